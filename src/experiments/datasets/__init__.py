"""Data sets: load them from files on this machine, compare the files with checksums, or take a small sample.

files       finding a file, and comparing it with its checksum
mnist       70,000 images of handwritten digits
moby_dick   a novel as a sequence of characters

Nothing is downloaded. Both ``load`` take a path, or the environment variable ``SPINBOOK_DATA``, the
folder of the files; ``sample`` returns a part that is committed here, enough for tests.
"""
