"""Finished and unfinished runs in the browser. Draws what files hold; figures are those of `runs` and `scoring`.

`site` is one set of named files, made when they are asked for; `server` serves them, `bundle` writes them into a
folder.
"""
