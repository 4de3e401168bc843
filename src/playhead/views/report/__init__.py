"""Write a report of a run, or of two and how they differ: one page, or text for a pull request.

`contract` says what is in it, `contents` finds what its large values say; `page` and `markdown` write that down;
`page.css` and `page.js` are the style and the script that stand in the page. The web page of the server shows the same
data.
"""
