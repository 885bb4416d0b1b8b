package api_test

import (
	"encoding/json"
	"fmt"

	"drydock.dev/drydock/api"
)

// A program without package client, in whatever language, says that a maintenance is done by a signal of this name, with this payload, to
// the workflow of this ID.
func Example() {
	payload, err := json.Marshal(api.Done{Message: api.Message{ID: "patch-42", By: "patch-robot", Comment: "kernel 6.12"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(api.MaintenanceID("", "worker-01", "patch-robot"))
	fmt.Println(api.MsgDone, string(payload))
	// Output:
	// node-maintenance/worker-01/patch-robot
	// done {"id":"patch-42","by":"patch-robot","comment":"kernel 6.12"}
}

// Nodes and clusters are read back from workflow IDs, such as those that a list of Temporal has.
func ExampleParseMaintenanceID() {
	cluster, node, requestor, err := api.ParseMaintenanceID("eu-1/node-maintenance/worker-01/patch-robot")
	fmt.Println(cluster, node, requestor, err)
	// Output: eu-1 worker-01 patch-robot <nil>
}
