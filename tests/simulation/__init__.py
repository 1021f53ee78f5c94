"""Workers against a model of the broker: thousands of runs full of faults, each made of one seed."""
