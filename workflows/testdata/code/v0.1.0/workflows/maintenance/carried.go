package maintenance

// State is what a run hands to the next, by a name that tests may say.
type State = state
