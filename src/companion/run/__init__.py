"""Runs the pages whose key has changed, each in a process and a kernel of its own, and builds the book.

``key`` computes the keys, ``execute`` runs a page with the ``engine`` in a ``kernel``, ``build`` runs the book, and
``process`` has the processes and the writing of files.
"""
