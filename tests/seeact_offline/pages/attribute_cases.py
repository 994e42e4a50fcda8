"""Small pages, an element's type and text as a model would say them, and the element that a person would then point at.

Written on 2026-11-23 with the expected answers, before the search was run on any of them. `search_says` runs one.
In a page `#1` stands for `backend_node_id="1"` and `|` for a quote; elements without a number are no candidates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from seeact_offline.pages.dom import Page
from seeact_offline.pages.search import PageSearch


@dataclass(frozen=True, slots=True)
class Case:
    """One reply on one page."""

    name: str
    page: str
    kind: str
    """ELEMENT TYPE as written."""
    text: str
    """ELEMENT TEXT as written."""
    expected: str
    """Ids in document order, with spaces between; several are asked for again, none is empty."""
    unseen: str = ""
    """Candidates whose box has no area or lies outside the page."""


def t(words: str) -> str:
    return f"<text>{words}</text>"


# What any such search has to find.
PLAIN = (
    Case("a button by its words", f"<button #1>{t('Add to cart')}</button>", "BUTTON", "Add to cart", "1"),
    Case("capitals drawn by a style sheet", f"<a #1>{t('Sign in')}</a>", "LINK", "SIGN IN", "1"),
    Case("a link by its picture", "<a #1><img alt=|Acme home|/></a>", "LINK", "Acme home", "1"),
    Case("a list by what it shows", f"<select #1><option>{t('1 adult')}</option><option>{t('2 adults')}</option></select>", "SELECTBOX", "1 adult", "1"),
    Case("a list by an option of it", f"<select #1><option>{t('1 adult')}</option><option>{t('2 adults')}</option></select>", "SELECTBOX", "2 adults", "1"),
    Case("a field by its placeholder", "<input #1 type=|text| placeholder=|Where to?|/><input #2 type=|text| placeholder=|When?|/>", "TEXTBOX", "Where to?", "1"),
    Case("a field by what it holds", "<input #1 type=|text| input_value=|New York|/>", "TEXTBOX", "New York", "1"),
    Case("twins are both offered", f"<li><button #1>{t('Choose')}</button></li><li><button #2>{t('Choose')}</button></li>", "BUTTON", "Choose", "1 2"),
    Case("the type decides between twins", f"<a #1>{t('Search')}</a><button #2>{t('Search')}</button>", "BUTTON", "Search", "2"),
    Case("a button and the words in it are one", f"<button #1><span #2>{t('Continue')}</span></button>", "BUTTON", "Continue", "1"),
    Case("nothing like it", f"<button #1>{t('Continue')}</button><a #2>{t('Help')}</a>", "BUTTON", "Delete my account", ""),
    Case("no text", f"<button #1>{t('Continue')}</button>", "BUTTON", "", ""),
    Case("a typing error", f"<button #1>{t('Reserve a table')}</button><a #2>{t('Restaurants')}</a>", "BUTTON", "Resreve a table", "1"),
)  # fmt: skip

# Of matches those that can be seen come first.
SEEN = (
    Case("the menu of small screens, not drawn", f"<nav><a #1>{t('Deals')}</a></nav><nav><a #2>{t('Deals')}</a></nav>", "LINK", "Deals", "2", "1"),
    Case("the menu of small screens, off the page, comes last", f"<nav><a #1>{t('Deals')}</a></nav><nav><a #2>{t('Deals')}</a></nav>", "LINK", "Deals", "1", "2"),
    Case("a drawn link before a button that is not", f"<button #1>{t('Menu')}</button><a #2>{t('Menu')}</a>", "BUTTON", "Menu", "2", "1"),
    Case("drawn with more words before not drawn with the same", f"<a #1>{t('Sign in')}</a><a #2>{t('Sign in / Register')}</a>", "LINK", "Sign in", "2", "1"),
    Case("drawn in capitals before not drawn as written", f"<button #1>{t('Search')}</button><button #2>{t('SEARCH')}</button>", "BUTTON", "Search", "2", "1"),
    Case("nothing else has it", f"<a #1>{t('Deals')}</a><a #2>{t('Hotels')}</a>", "LINK", "Deals", "1", "1"),
    Case("two drawn and one not", f"<button #1>{t('Book')}</button><button #2>{t('Book')}</button><button #3>{t('Book')}</button>", "BUTTON", "Book", "1 3", "2"),
    Case("a link without area around words that are drawn", f"<a #1><span #2>{t('Deals')}</span></a>", "LINK", "Deals", "1", "1"),
    Case("a ticked box is drawn by its label", f"<input #1 type=|checkbox|/><label #2>{t('Free cancellation')}</label>", "CHECKBOX", "Free cancellation", "2", "1"),
    Case("a closed dialogue repeats the form", f"<form><label>{t('Email')}</label><input #1/></form><form><label>{t('Email')}</label><input #2/></form>", "TEXTBOX", "Email", "2", "1"),
)  # fmt: skip

# A match on a label leads to its field.
LABELS = (
    Case("label and for", f"<p><label #1 for=|a|>{t('City')}</label></p><p><input #2/><input #3 id=|a|/></p>", "TEXTBOX", "City", "3"),
    Case("for names nothing that is left", f"<label #1 for=|a|>{t('City')}</label><input #2/>", "TEXTBOX", "City", "2"),
    Case("named by another element", f"<b #1 id=|a|>{t('City')}</b><p><input #2 aria_labelledby=|a|/></p>", "TEXTBOX", "City", "2"),
    Case("a label around its field", f"<label #1>{t('City')}<input #2/></label>", "TEXTBOX", "City", "2"),
    Case("a label, the field one wrapper deeper", f"<div><label #1>{t('City')}</label><div><input #2/></div></div>", "TEXTBOX", "City", "2"),
    Case("plain words, the field one wrapper deeper", f"<div><span #1>{t('First name')}</span><div><input #2/></div></div>", "TEXTBOX", "First name", "2"),
    Case("both in wrappers of their own", f"<div><div #1><span #2>{t('First name')}</span></div><div #3><input #4/></div></div>", "TEXTBOX", "First name", "4"),
    Case("an icon between them", f"<div><label #1>{t('Destination')}</label><svg #2/><input #3/></div>", "TEXTBOX", "Destination", "3"),
    Case("a link between them", f"<div><label #1>{t('Password')}</label><a #2>{t('Forgot it?')}</a><input #3 type=|password|/></div>", "TEXTBOX", "Password", "3"),
    Case("a row of a table", f"<table><tr><td #1>{t('Surname')}</td><td #2><input #3/></td></tr><tr><td #4>{t('Age')}</td><td #5><input #6/></td></tr></table>", "TEXTBOX", "Age", "6"),
    Case("captions in a row above the fields", f"<table><tr><td #1>{t('First')}</td><td #2>{t('Last')}</td></tr><tr><td><input #3/></td><td><input #4/></td></tr></table>", "TEXTBOX", "Last", "4"),
    Case("words right in the form", f"<form>{t('From')}<input #1/>{t('To')}<input #2/></form>", "TEXTBOX", "To", "2"),
    Case("a flat form", f"<form><span #1>{t('From')}</span><input #2/><span #3>{t('To')}</span><input #4/></form>", "TEXTBOX", "From", "2"),
    Case("a form of wrappers side by side", f"<div #1><span>{t('From')}</span></div><div><input #2/></div><div #3><span>{t('To')}</span></div><div><input #4/></div>", "TEXTBOX", "To", "4"),
    Case("the first of two fields after one label", f"<div><span #1>{t('Price')}</span><div><input #2/><input #3/></div></div>", "TEXTBOX", "Price", "2"),
    Case("a label that floats over its field stands behind it", f"<div><input #1/><label #2>{t('Email')}</label></div><div><input #3/><label #4>{t('Phone')}</label></div>", "TEXTBOX", "Email", "1"),
    Case("a definition list", f"<dl><dt #1>{t('Postcode')}</dt><dd #2><input #3/></dd></dl>", "TEXTBOX", "Postcode", "3"),
    Case("a question above a text area", f"<div><p #1>{t('What went wrong?')}</p><textarea #2/></div>", "TEXTAREA", "What went wrong?", "2"),
    Case("a label and a placeholder", f"<div><span #1>{t('Pick-up location')}</span><div><input #2 placeholder=|Airport or city|/></div></div>", "TEXTBOX", "Pick-up location", "2"),
    Case("the star of what must be filled in", f"<div><label #1>{t('Email')}<span #2>{t('*')}</span></label><div><input #3/></div></div>", "TEXTBOX", "Email *", "3"),
    Case("a list after its caption", f"<div><span #1>{t('Sort by')}</span><select #2><option>{t('Price')}</option></select></div>", "SELECTBOX", "Sort by", "2"),
    Case("caption and choice of a list", f"<div><span #1>{t('Sort by')}</span><select #2><option>{t('Price')}</option></select></div>", "SELECTBOX", "Sort by: Price", "2"),
    Case("a link before a field is no label", f"<div><a #1>{t('Help')}</a><input #2/></div>", "TEXTBOX", "Help", ""),
    Case("a label does not reach past a field", f"<div><span #1>{t('From')}</span><input #2/><input #3/></div>", "TEXTBOX", "From", "2"),
    Case("the words before a button are no name of it", f"<div><p #1>{t('Ready to go')}</p><button #2>{t('Book')}</button></div>", "BUTTON", "Ready to go", "1"),
)  # fmt: skip

# What an icon is called.
ICONS = (
    Case("a drawing that says what it is", "<button #1><svg aria_label=|Close|/></button>", "BUTTON", "Close", "1"),
    Case("a title on an empty element inside", "<button #1><i title=|Close|/></button>", "ICON", "Close", "1"),
    Case("a label on an empty element inside", "<a #1><span aria_label=|Shopping cart|/></a>", "LINK", "Shopping cart", "1"),
    Case("a name on the button", "<button #1 name=|search|><svg/></button>", "BUTTON", "Search", "1"),
    Case("a name on the icon", "<button #1><ion-icon name=|close|/></button>", "BUTTON (icon)", "Close", "1"),
    Case("a picture that sends the form", "<input #1 type=|image| name=|go|/>", "BUTTON", "Go", "1"),
    Case("a name of words run together", "<button #1 name=|addToCart|><svg/></button>", "BUTTON", "Add to cart", "1"),
    Case("a name in a server's spelling", "<button #1 name=|ctl00$btnSearch|><svg/></button>", "BUTTON", "Search", "1"),
    Case("what is written goes before a name", f"<button #1 name=|search|>{t('Find')}</button><button #2>{t('Search')}</button>", "BUTTON", "Search", "2"),
    Case("a name is no text of what has words", f"<button #1 name=|search|>{t('Find')}</button>", "BUTTON", "Search", ""),
    Case("a field of which only the name is left", "<input #1 type=|text| name=|zip_code|/><input #2 type=|text| name=|street|/>", "TEXTBOX", "Zip code", "1"),
    Case("a field of which only the type is left", "<input #1 type=|email|/><input #2 type=|password|/>", "TEXTBOX", "Email", "1"),
    Case("a button with the browser's own words", "<input #1 type=|text|/><input #2 type=|submit|/>", "BUTTON", "Submit", "2"),
    Case("a drawing by its class", "<button #1><svg class=|icon-search|/></button><button #2><svg class=|icon-cart|/></button>", "BUTTON", "Search", "1"),
    Case("a cross for an x", f"<button #1>{t('×')}</button><button #2>{t('+')}</button>", "BUTTON", "X", "1"),
    Case("an arrow for an angle", f"<button #1>{t('‹')}</button><button #2>{t('›')}</button>", "BUTTON", ">", "2"),
    Case("minus and plus", f"<button #1>{t('−')}</button><button #2>{t('+')}</button>", "BUTTON", "-", "1"),
)  # fmt: skip

# Boxes to tick.
BOXES = (
    Case("a value that says what is ticked", "<input #1 type=|checkbox| value=|Free wifi|/><input #2 type=|checkbox| value=|Pool|/>", "CHECKBOX", "Free wifi", "1"),
    Case("a value of words run together", "<input #1 type=|radio| value=|roundTrip|/><input #2 type=|radio| value=|oneWay|/>", "RADIO BUTTON", "Round trip", "1"),
    Case("on is no text", "<input #1 type=|checkbox| value=|on|/>", "CHECKBOX", "On", ""),
    Case("a number is no text", "<input #1 type=|checkbox| value=|42|/>", "CHECKBOX", "42", ""),
    Case("plain words after a box", f"<div><input #1 type=|checkbox|/><span #2>{t('Nonstop')}</span></div>", "CHECKBOX", "Nonstop", "1"),
    Case("words after a box, each in a wrapper", f"<div><div><input #1 type=|radio|/></div><div #2><span #3>{t('4 stars')}</span></div></div>", "RADIO", "4 stars", "1"),
    Case("a switch at the end of its line", f"<div><span #1>{t('Pets allowed')}</span><input #2 type=|checkbox|/></div>", "TOGGLE", "Pets allowed", "2"),
    Case("the second of a list", f"<li><input #1 type=|checkbox|/><span #2>{t('Air conditioning')}</span></li><li><input #3 type=|checkbox|/><span #4>{t('Kitchen')}</span></li>", "CHECKBOX", "Kitchen", "3"),
    Case("a label goes before a value", f"<input #1 type=|radio| value=|economy|/><label>{t('Business')}</label><input #2 type=|radio| value=|business|/><label>{t('Economy')}</label>", "RADIO", "Economy", "2"),
    Case("a price beside the words", f"<label #1><input #2 type=|radio|/>{t('Economy')}<span>{t('$120')}</span></label>", "RADIO", "Economy", "2"),
)  # fmt: skip

# How models write what they see.
WORDING = (
    Case("the type behind the text", f"<button #1>{t('Find tickets')}</button>", "BUTTON", "Find tickets button", "1"),
    Case("a sentence around a quoted text", f"<button #1>{t('Go')}</button><button #2>{t('Help')}</button>", "BUTTON", 'The button labeled "Go"', "1"),
    Case("the type around one word", f"<label>{t('Location')}</label><input #1/><label>{t('Date')}</label><input #2/>", "TEXTBOX", "Location input field", "1"),
    Case("a remark in brackets", f"<button #1>{t('Search')}</button><a #2>{t('Searches')}</a>", "BUTTON", "Search (magnifying glass icon)", "1"),
    Case("a text that was cut", f"<a #1>{t('Deluxe King Room with Sea View and Balcony')}</a><a #2>{t('Twin Room')}</a>", "LINK", "Deluxe King Room with Se...", "1"),
    Case("a text that was cut at a word", f"<a #1>{t('Deluxe King Room with Sea View and Balcony')}</a><a #2>{t('Twin Room')}</a>", "LINK", "Deluxe King Room with…", "1"),
    Case("another sign between the words", f"<button #1>{t('1 room · 2 guests')}</button>", "BUTTON", "1 room, 2 guests", "1"),
    Case("no accents", f"<a #1>{t('São Paulo')}</a><a #2>{t('Salvador')}</a>", "LINK", "Sao Paulo", "1"),
    Case("a short text without its accent", f"<a #1>{t('Café')}</a><a #2>{t('Bar')}</a>", "LINK", "Cafe", "1"),
    Case("a tab called a link", f"<div #1 role=|tab|>{t('Reviews')}</div>", "LINK", "Reviews", "1"),
    Case("a type that nobody knows", "<a #1><img #2 alt=|Beach house|/></a>", "IMAGE", "Beach house", "1"),
    Case("a line break", f"<button #1>{t('Round trip')}</button>", "BUTTON", "Round\ntrip", "1"),
    Case("a date in a calendar", f"<td #1 role=|gridcell|>{t('12')}</td><td #2 role=|gridcell|>{t('21')}</td>", "BUTTON", "12", "1"),
)  # fmt: skip

# Written when the search had been improved for those above, again with the answers before it was run.
LATER = (
    Case("two columns", f"<div><div><label>{t('Check-in')}</label><input #1/></div><div><label>{t('Check-out')}</label><input #2/></div></div>", "TEXTBOX", "Check-out", "2"),
    Case("a row of labels above a row of fields", f"<div><label #1>{t('Check-in')}</label><label #2>{t('Check-out')}</label></div><div><input #3/><input #4/></div>", "TEXTBOX", "Check-out", "4"),
    Case("a hint between label and field", f"<div><label #1>{t('Email')}</label><p #2>{t('We never share it')}</p><input #3/></div>", "TEXTBOX", "Email", "3"),
    Case("radio buttons under a legend", f"<fieldset><legend #1>{t('Trip')}</legend><input #2 type=|radio|/><span #3>{t('One way')}</span><input #4 type=|radio|/><span #5>{t('Return')}</span></fieldset>", "RADIO", "Return", "4"),
    Case("a box beside a drawing that says something", "<li><input #1 type=|checkbox|/><svg #2 aria_label=|5 stars|/></li>", "CHECKBOX", "5 stars", "1"),
    Case("plus of a stepper", f"<button #1>{t('-')}</button><input #2 value=|1|/><button #3>{t('+')}</button>", "BUTTON", "+", "3"),
    Case("part of what an icon says", "<a #1 aria_label=|Close dialog|><svg/></a>", "BUTTON", "Close", "1"),
    Case("a named icon beside a field of that name", "<input #1 placeholder=|Search|/><button #2 name=|search|><svg/></button>", "BUTTON", "Search", "2"),
    Case("a field beside a named icon of that name", "<input #1 placeholder=|Search|/><button #2 name=|search|><svg/></button>", "TEXTBOX", "Search", "1"),
    Case("a list of which only the name says what it is", f"<select #1 name=|state|><option>{t('AL')}</option></select><select #2 name=|year|><option>{t('2026')}</option></select>", "SELECTBOX", "State", "1"),
    Case("a cross that is drawn", "<div #1><svg #2 class=|icon-x|/></div>", "BUTTON", "X", "2"),
    Case("a title on a sign", f"<button #1 title=|Previous month|>{t('‹')}</button><button #2 title=|Next month|>{t('›')}</button>", "BUTTON", "Next", "2"),
    Case("caption and placeholder of two fields", f"<div><span #1>{t('City')}</span><input #2/></div><input #3 placeholder=|City|/>", "TEXTBOX", "City", "2 3"),
    Case("part of a sentence before a field", f"<div><p #1>{t('Enter your promo code to save')}</p><input #2/></div>", "TEXTBOX", "promo code", "2"),
    Case("a box whose words hold a link", f"<div><input #1 type=|checkbox|/><span #2>{t('I accept the')}<a #3>{t('Terms')}</a></span></div>", "CHECKBOX", "I accept the Terms", "1"),
    Case("the link in a box's words", f"<div><input #1 type=|checkbox|/><span #2>{t('I accept the')}<a #3>{t('Terms')}</a></span></div>", "LINK", "Terms", "3"),
    Case("a list made of a button", f"<div><span #1>{t('Size')}</span><div #2 role=|button|>{t('M')}</div></div>", "SELECTBOX", "Size", "2"),
    Case("a remark on where a link leads", f"<a #1>{t('Privacy Policy')}</a><a #2>{t('Privacy Settings')}</a>", "LINK", "Privacy Policy (opens in a new tab)", "1"),
    Case("a text in single quotes", f"<button #1>{t('Show 24 results')}</button><button #2>{t('Show less')}</button>", "BUTTON", "The button with the text 'Show 24 results'", "1"),
    Case("a box without area in a label that is drawn", f"<label #1><input #2 type=|checkbox|/>{t('Wifi')}</label>", "CHECKBOX", "Wifi", "1", "2"),
    Case("a link before a field", f"<p #1>{t('New here?')}<a #2>{t('Register')}</a></p><input #3/>", "LINK", "Register", "2"),
    Case("a paragraph before a field", f"<p #1>{t('By going on you agree that we may call you about this and other offers of ours')}</p><input #2/>", "TEXTBOX", "other offers", ""),
    Case("a search field in a header", f"<header><a #1>{t('Acme')}</a><form><input #2 type=|search| name=|q|/><button #3>{t('Go')}</button></form></header>", "TEXTBOX", "Search", "2"),
)  # fmt: skip

CASES = (*PLAIN, *SEEN, *LABELS, *ICONS, *BOXES, *WORDING, *LATER)


def search_says(case: Case) -> str:
    """Ids in document order, as `expected` has them."""
    body = re.sub(r"#(\d+)", r'backend_node_id="\1"', case.page.replace("|", '"'))
    page = Page(f'<html backend_node_id="0"><body>{body}</body></html>')
    seen = page.ids - set(case.unseen.split())
    return " ".join(PageSearch(page.nodes(), page.ids, seen=seen).find(case.kind, case.text).ids)
