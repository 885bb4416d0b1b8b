package api

import (
	"go.temporal.io/sdk/temporal"
)

// Search attributes, set only where the namespace has them.
var (
	AttributeNode      = temporal.NewSearchAttributeKeyKeyword("DrydockNode")
	AttributeRequestor = temporal.NewSearchAttributeKeyKeyword("DrydockRequestor")
	AttributePhase     = temporal.NewSearchAttributeKeyKeyword("DrydockPhase")
	AttributeCluster   = temporal.NewSearchAttributeKeyKeyword("DrydockCluster")
)

// SearchAttributes lists the search attributes Drydock registers, all of type Keyword.
var SearchAttributes = []temporal.SearchAttributeKeyKeyword{
	AttributeNode, AttributeRequestor, AttributePhase, AttributeCluster,
}
