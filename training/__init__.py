"""Make the bundled demo model from open corpora, reproducibly: `python -m training.train_demo_model`."""
