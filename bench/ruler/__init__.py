"""Rules and events in the manner of event-ruler's benchmark, for `bench/json_text.py`."""
