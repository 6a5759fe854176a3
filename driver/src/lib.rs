//! Verbs over the card.
