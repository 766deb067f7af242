"""The settings: their model, the loader that reads them, the flags that set them, and their TOML file."""
