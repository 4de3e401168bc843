"""Serve a store over HTTP: spans come in, questions are answered, cassettes are made and fed in anew.

Thin: a request is read, a verb of `_api` is called, its answer is written. README.md beside this file tells the life of
a request.
"""
