"""Files of factory-cli: its reports of outputs, its batches of test cases, and publishing both."""
