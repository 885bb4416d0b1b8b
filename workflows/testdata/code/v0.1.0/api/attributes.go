package api

import (
	"go.temporal.io/sdk/temporal"
)

var AttributeNode = temporal.NewSearchAttributeKeyKeyword("DrydockNode")

var AttributeRequestor = temporal.NewSearchAttributeKeyKeyword("DrydockRequestor")

var AttributePhase = temporal.NewSearchAttributeKeyKeyword("DrydockPhase")

var AttributeCluster = temporal.NewSearchAttributeKeyKeyword("DrydockCluster")
