"""What a request must be: rules for values (`rules.py`), and for each message of the API (`requests.py`)."""
