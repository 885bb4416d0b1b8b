// Command nexus is an example of a caller by Nexus: a Temporal worker in a namespace of its own, whose workflow Upgrade has Drydock hold nodes
// while the operation "flash" of its own service works on them. It knows nothing of Drydock but the JSON of its requests.
//
//	temporal operator nexus endpoint create --name firmware --target-namespace tenant --target-task-queue firmware
//	TEMPORAL_NAMESPACE=tenant nexus ssh root@{node} flash-bios 2.4
//	temporal workflow start --namespace tenant --task-queue firmware --type Upgrade --workflow-id bios-2.4 \
//	  --input '{"nodes": ["worker-01", "worker-02"], "parallel": 2, "reason": "BIOS 2.4"}'
//
// Drydock's worker has nexus: {endpoint: drydock, work: [firmware]} in its configuration.
package main

import (
	"fmt"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/worker"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: nexus COMMAND [ARGUMENT...]   the command that flashes {node}")
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "nexus:", err)
		os.Exit(1)
	}
}

func run(command []string) error {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return err
	}
	temporal, err := client.Dial(options)
	if err != nil {
		return err
	}
	defer temporal.Close()
	w := worker.New(temporal, "firmware", worker.Options{})
	register(w, command)
	return w.Run(worker.InterruptCh())
}
