"""Ads behind a web service: every worker process maps the same snapshot and follows it.

ADS=ads.tamis uvicorn service:app --workers 4
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException

import tamis


@asynccontextmanager
async def follow_snapshot(app: FastAPI) -> AsyncIterator[None]:
    """Open the snapshot when a worker starts; a new one is warmed up and takes over within the interval."""
    seconds = float(os.environ.get("ADS_INTERVAL", "1"))
    with tamis.open(os.environ["ADS"], watch=True, interval=seconds, warm_up=[{"country": "CA"}]) as live:
        app.state.live = live
        yield


app = FastAPI(lifespan=follow_snapshot)


@app.post("/ads")
def ads(page_view: dict[str, Any], k: int = 3) -> dict[str, Any]:
    """The best campaigns for a page view, with the pages to show."""
    index = app.state.live.index  # one snapshot for the whole answer, even if another takes over meanwhile
    try:
        best = index.top_k(page_view, k=k)
    except tamis.TamisError as error:
        raise HTTPException(422, str(error)) from None
    shown = index.payloads([match.id for match in best])
    return {
        "worker": os.getpid(),
        "ads": [
            {"id": match.id, "score": match.score, "page": page.decode()}
            for match, page in zip(best, shown, strict=True)
        ],
    }


@app.get("/health")
def health() -> dict[str, Any]:
    """Which snapshot this worker answers from, and why a newer one was not taken."""
    live = app.state.live
    return {
        "worker": os.getpid(),
        "generation": live.generation,
        "campaigns": len(live),
        "error": None if live.error is None else str(live.error),
    }
