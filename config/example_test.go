package config_test

import (
	"fmt"

	"drydock.dev/drydock/config"
)

// A worker's configuration is read strictly, over the defaults. Whoever needs no channels, checks and sinks gives no kinds of them, and
// links none of their libraries.
func ExampleParse() {
	c := config.Default()
	if err := config.Parse([]byte("cluster: eu-1\nscheduler: {maxParallel: 3, maxUnavailable: 10%}\n"), &c, config.Kinds{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Cluster, c.Scheduler.MaxParallel, c.Scheduler.MaxUnavailable, c.TaskQueue)

	fmt.Println(config.Parse([]byte("scheduler: {maxparalel: 3}"), &c, config.Kinds{}))
	// Output:
	// eu-1 3 10% drydock
	// scheduler.maxparalel: unknown field; did you mean "maxParallel"?
}
