pytest_plugins = ["evalsuite.plugin"]
