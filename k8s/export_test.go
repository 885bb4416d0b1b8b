package k8s

// EditDistance is editDistance, for tests.
var EditDistance = editDistance
