"""What may be asked of any page: what sticks out of its window, and what a keyboard does not reach."""

from __future__ import annotations

from typing import Any

from browser.chromium import Page


def sticking_out(page: Page) -> Any:
    """The elements that reach beyond the window, but for those that scroll in a box of their own."""
    return page.evaluate(
        """[...document.querySelectorAll('main *, header *, footer *')]
        .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.wide, pre, code'))
        .map(e => e.tagName + '.' + e.className)"""
    )


def unreachable(page: Page) -> Any:
    """The elements that scroll sideways and take no focus."""
    return page.evaluate(
        """[...document.querySelectorAll('*')]
        .filter(e => ['auto', 'scroll'].includes(getComputedStyle(e).overflowX))
        .filter(e => e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0)
        .map(e => e.tagName + '.' + e.className)"""
    )
