"""Several sites: what each tells its neighbours, and how events find their way between them."""
