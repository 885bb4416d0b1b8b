package notification

import (
	_ "embed"

	"drydock.dev/drydock/workflows/handover"
)

//go:embed v0.1.0.txt
var fieldsOf010 string

// contract is what 0.1.0 accepts as the state of a notification. It refuses events of plans and of health checks, neither of which it knows.
var contract = handover.Contract{Fields: handover.ParseFields(fieldsOf010)}
