package client_test

import (
	"context"
	"fmt"

	temporalclient "go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
)

// It takes a node out of service, works on it, and puts it back.
func Example() {
	ctx := context.Background()
	temporal, err := temporalclient.Dial(temporalclient.Options{HostPort: "localhost:7233"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer temporal.Close()
	drydock := client.New(temporal, client.Options{By: "patch-robot", Requestor: "patch-robot"})

	started, _, err := drydock.Start(ctx, client.Input{"node": "worker-01", "requestor": "patch-robot", "reason": "kernel 6.12"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ready, err := drydock.Wait(ctx, started.Maintenance, client.Ready)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("working on", ready.Node)
	if _, err := drydock.Send(ctx, ready.Maintenance, api.MsgDone, api.Done{Requestor: "patch-robot"}, "patched"); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := drydock.Wait(ctx, ready.Maintenance, client.Completed); err != nil {
		fmt.Println(err)
	}
}
