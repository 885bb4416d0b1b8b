// Package client does from a Go program what the command line does: it starts maintenances, finds those that run, sends them messages,
// waits for them and reads their status, and reads and changes the limits of the scheduler. It needs a client of Temporal and nothing else:
// all work on nodes is done by Drydock's workers.
//
// A maintenance is named by its node and its requestor. Start begins it, or goes on with the same one that runs; Wait returns when it is
// where a Goal wants it to be; Send sends it a message, such as api.MsgDone, and returns what the maintenance answers. The example takes a
// node out of service, works on it and puts it back.
//
// Errors can be distinguished: ErrUnreachable, ErrUnanswered, ErrEnded and ErrInvalid with errors.Is, and the types DifferentError,
// ReleasingError, RefusedInputError, NotFoundError, EndError, UndecidedError, RefusedError, UnsettledError, NoSchedulerError,
// NoWorkerError and BusyError with errors.As. What fails in Temporal itself is a CallError. A call whose
// context ends returns the context's cause.
package client

import (
	"cmp"
	"time"

	temporalclient "go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
)

// Options say which Drydock a Client is for, and who uses it.
type Options struct {
	// Cluster is the name of the cluster as in the worker's configuration; empty if that names none.
	Cluster string
	// TaskQueue is the workers' task queue without the cluster; api.DefaultTaskQueue where it is empty.
	TaskQueue string
	// Namespace is the one the Temporal client was made for, which errors name; Temporal's default where it is empty.
	Namespace string
	// By says who acts, such as jane@laptop: it is recorded with all that is started and said.
	By string
	// Requestor is on whose behalf maintenances are looked for where nobody is named.
	Requestor string
	// Now is the clock; time.Now where it is nil.
	Now func() time.Time
}

// Client is a client of one Drydock. It can be used by several goroutines at a time.
type Client struct {
	server  *server
	options Options
}

// New makes a Client on a connection to Temporal, which stays the caller's to close.
func New(temporal temporalclient.Client, options Options) *Client {
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Client{
		options: options,
		server: &server{
			temporal: temporal, namespace: cmp.Or(options.Namespace, temporalclient.DefaultNamespace),
			taskQueue: api.TaskQueue(options.Cluster, cmp.Or(options.TaskQueue, api.DefaultTaskQueue)), now: options.Now,
		},
	}
}

// By is who acts.
func (c *Client) By() string { return c.options.By }

// Cluster is the name of the cluster, empty if it has none.
func (c *Client) Cluster() string { return c.options.Cluster }
