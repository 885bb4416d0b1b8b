package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	commandpb "go.temporal.io/api/command/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // the SDK may compress what it sends
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// call is a call of the worker to Temporal, as far as a step can be recognized by it.
type call struct {
	// method is the last part of the gRPC method.
	method string
	// task is that of the activity whose task is handed on or answered, or that heartbeats.
	task
	// signal is sent by the call.
	signal string
	// commands are those of a workflow task: the type, and the name of the signal or the workflow.
	commands []string
	// from is whose proxy it came to; empty of Drydock's worker.
	from string
}

func (c call) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s%s %s", c.method, c.activity, c.signal, strings.Join(c.commands, ",")))
}

// temporalProxy carries the calls of a lane's worker to Temporal, looks at each, and can be cut.
type temporalProxy struct {
	address string
	// whose is in each call.
	whose    string
	board    *switchboard
	server   *grpc.Server
	upstream *grpc.ClientConn
	listener *cuttable
	// expired has every call refused, as a server does whose client's key is out of date.
	expired atomic.Bool

	mu sync.Mutex
	// tasks are the activities whose tasks went to the worker, by task token.
	tasks map[string]task
}

// task is an activity's: its type, and what it was given.
type task struct{ activity, input string }

const maxMessage = 64 << 20

func newTemporalProxy(to string, board *switchboard) (*temporalProxy, error) {
	upstream, err := grpc.NewClient(to,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second}}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(bytesCodec{}), grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, upstream.Close())
	}
	p := &temporalProxy{
		address: listener.Addr().String(), board: board, upstream: upstream,
		listener: &cuttable{Listener: listener}, tasks: map[string]task{},
	}
	p.server = grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{}), grpc.UnknownServiceHandler(p.carry), grpc.MaxRecvMsgSize(maxMessage))
	go func() { _ = p.server.Serve(p.listener) }()
	return p, nil
}

func (p *temporalProxy) close() {
	p.server.Stop()
	p.upstream.Close()
}

// carry is one call. All of Temporal's calls have one message each way.
func (p *temporalProxy) carry(_ any, stream grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(stream)
	var in, out []byte
	if err := stream.RecvMsg(&in); err != nil {
		return err
	}
	ctx := stream.Context()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md)
	}
	t := p.board.Load()
	c := p.read(full, in)
	if t != nil && !c.isTask() {
		side := before
		if c.answersTask() {
			side = after
		}
		t.call(c, side)
	}
	if p.expired.Load() {
		return status.Error(codes.Unauthenticated, "chaos: the credentials have expired")
	}
	if err := p.upstream.Invoke(ctx, full, &in, &out); err != nil {
		return err
	}
	for _, handed := range p.handed(c.method, out) {
		// The trap may have been set while the worker's poll waited.
		if t := p.board.Load(); t != nil {
			t.call(call{method: c.method, task: handed}, before)
		}
	}
	if t != nil && !c.isTask() && !c.answersTask() {
		t.call(c, after)
	}
	return stream.SendMsg(&out)
}

func (c call) isTask() bool { return c.method == "PollActivityTaskQueue" }

func (c call) beats() bool { return c.method == "RecordActivityTaskHeartbeat" }

// answersTask means that the call ends an activity, whose work is done by then.
func (c call) answersTask() bool { return strings.HasPrefix(c.method, "RespondActivityTask") }

// read says what a call is.
func (p *temporalProxy) read(full string, in []byte) call {
	c := call{method: full[strings.LastIndex(full, "/")+1:], from: p.whose}
	switch c.method {
	case "RespondActivityTaskCompleted":
		c.task = p.taskOf(decode[workflowservice.RespondActivityTaskCompletedRequest](in).GetTaskToken())
	case "RespondActivityTaskFailed":
		c.task = p.taskOf(decode[workflowservice.RespondActivityTaskFailedRequest](in).GetTaskToken())
	case "RespondActivityTaskCanceled":
		c.task = p.taskOf(decode[workflowservice.RespondActivityTaskCanceledRequest](in).GetTaskToken())
	case "RecordActivityTaskHeartbeat":
		c.task = p.taskOf(decode[workflowservice.RecordActivityTaskHeartbeatRequest](in).GetTaskToken())
	case "SignalWorkflowExecution":
		c.signal = decode[workflowservice.SignalWorkflowExecutionRequest](in).GetSignalName()
	case "SignalWithStartWorkflowExecution":
		c.signal = decode[workflowservice.SignalWithStartWorkflowExecutionRequest](in).GetSignalName()
	case "RespondWorkflowTaskCompleted":
		for _, command := range decode[workflowservice.RespondWorkflowTaskCompletedRequest](in).GetCommands() {
			c.commands = append(c.commands, commandName(command))
		}
	}
	return c
}

// decode reads a message. It returns nil, whose fields are empty, for what is none.
func decode[T any, M interface {
	*T
	proto.Message
}](text []byte) M {
	message := M(new(T))
	if proto.Unmarshal(text, message) != nil {
		return nil
	}
	return message
}

// taskOf is the task that has a token. No token is that of none.
func (p *temporalProxy) taskOf(token []byte) task {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tasks[string(token)]
}

func commandName(c *commandpb.Command) string {
	name := c.CommandType.String()
	if signal := c.GetSignalExternalWorkflowExecutionCommandAttributes(); signal != nil {
		name += ":" + signal.SignalName
	}
	if child := c.GetStartChildWorkflowExecutionCommandAttributes(); child != nil {
		name += ":" + child.WorkflowType.GetName()
	}
	return name
}

// handed notes the activity tasks in an answer and returns them.
func (p *temporalProxy) handed(method string, out []byte) (handed []task) {
	var tasks []*workflowservice.PollActivityTaskQueueResponse
	switch method {
	case "PollActivityTaskQueue":
		tasks = append(tasks, decode[workflowservice.PollActivityTaskQueueResponse](out))
	case "RespondWorkflowTaskCompleted":
		// The server may hand out the activities of a workflow task at once.
		tasks = decode[workflowservice.RespondWorkflowTaskCompletedResponse](out).GetActivityTasks()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range tasks {
		if len(t.GetTaskToken()) == 0 {
			continue
		}
		found := task{activity: t.ActivityType.GetName()}
		for _, payload := range t.Input.GetPayloads() {
			found.input += string(payload.Data)
		}
		p.tasks[string(t.TaskToken)] = found
		handed = append(handed, found)
	}
	return handed
}

// bytesCodec passes messages on as they are.
type bytesCodec struct{}

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

func (bytesCodec) Name() string { return "proto" }

// cuttable hangs up on everybody while it is cut.
type cuttable struct {
	net.Listener

	mu  sync.Mutex
	cut bool
	// accepted are the connections since the last cut, of which some may be closed.
	accepted []net.Conn
}

// Accept returns the next connection that is not hung up on.
func (c *cuttable) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		cut := c.cut
		if !cut {
			c.accepted = append(c.accepted, conn)
		}
		c.mu.Unlock()
		if !cut {
			return conn, nil
		}
		conn.Close()
	}
}

// set cuts or mends.
func (c *cuttable) set(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
	if cut {
		for _, conn := range c.accepted {
			conn.Close()
		}
		c.accepted = nil
	}
}
