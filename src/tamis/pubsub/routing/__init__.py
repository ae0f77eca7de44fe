"""Where subscriptions, advertisements and events are sent: one file per algorithm, each a `Routing`."""

from tamis.pubsub.routing.advertisement_forwarding import AdvertisementForwarding
from tamis.pubsub.routing.contract import Routing
from tamis.pubsub.routing.flooding import EventFlooding
from tamis.pubsub.routing.rendezvous import Rendezvous
from tamis.pubsub.routing.subscription_forwarding import SubscriptionForwarding

__all__ = ["AdvertisementForwarding", "EventFlooding", "Rendezvous", "Routing", "SubscriptionForwarding"]
