"""The events as JSON Schemas and an AsyncAPI document, made from the types that write them."""
