// Command firmware is an example of package maintain: a Temporal worker with a workflow of its own, which flashes nodes while Drydock holds
// them. It knows nothing of Kubernetes, and reads where Temporal is from the variables that the Temporal CLI reads (TEMPORAL_ADDRESS, ...).
//
//	firmware ssh root@{node} flash-bios 2.4
//	temporal workflow start --task-queue firmware --type Rollout --workflow-id bios-2.4 \
//	  --input '{"nodes": ["worker-01", "worker-02"], "parallel": 2, "reason": "BIOS 2.4"}'
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
		fmt.Fprintln(os.Stderr, "usage: firmware COMMAND [ARGUMENT...]   the command that flashes {node}")
		os.Exit(2)
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "firmware:", err)
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
	w.RegisterWorkflow(Rollout)
	w.RegisterActivity(&flasher{command})
	return w.Run(worker.InterruptCh())
}
