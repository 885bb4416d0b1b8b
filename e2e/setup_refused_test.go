package e2e

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // the SDK may compress what it sends
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/config/namespace"
	"drydock.dev/drydock/rules/setup"
)

// uncopied takes messages as they are.
type uncopied struct{}

func (uncopied) Name() string { return "proto" }

func (uncopied) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (uncopied) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// withoutOperators is the Temporal server as Temporal Cloud shows itself: operators' calls are refused to everybody.
func (s *site) withoutOperators() (address string) {
	s.Helper()
	upstream, err := grpc.NewClient(shared.temporal.Address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(uncopied{})))
	if err != nil {
		s.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(s.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(uncopied{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		if strings.Contains(method, "operatorservice") || strings.HasSuffix(method, "/UpdateNamespace") || strings.HasSuffix(method, "/RegisterNamespace") {
			return status.Error(codes.PermissionDenied, "Request unauthorized.")
		}
		var in, out []byte
		if err := stream.RecvMsg(&in); err != nil {
			return err
		}
		ctx := stream.Context()
		if md, ok := metadata.FromIncomingContext(ctx); ok {
			ctx = metadata.NewOutgoingContext(ctx, md)
		}
		if err := upstream.Invoke(ctx, method, &in, &out); err != nil {
			return err
		}
		return stream.SendMsg(&out)
	}))
	go func() { _ = server.Serve(listener) }()
	s.Cleanup(func() {
		server.Stop()
		upstream.Close()
	})
	return listener.Addr().String()
}

func TestSetupSaysWhatTemporalCloudWants(t *testing.T) {
	s := prepareSite(t, "")
	name := "cloud-" + s.name + ".a1b2c"
	s.inNamespace(name)
	if err := namespace.Create(s.ctx, s.temporal, name, 72*time.Hour); err != nil {
		t.Fatal(err)
	}
	to := []string{"--skip-kubernetes", "--address", s.withoutOperators()}
	// The server takes a moment to answer for a namespace that is new.
	s.eventually("the namespace is looked at, and has no search attributes", func() error {
		r := s.drydock(append([]string{"setup"}, to...)...)
		if r.status != 1 || !strings.Contains(r.out(), "MISSING  SearchAttribute DrydockNode") {
			return errors.New(r.out())
		}
		return nil
	})
	s.exits(s.drydock(append([]string{"setup", "--apply"}, to...)...), 1, "Request unauthorized",
		"tcld namespace retention set --namespace "+name+" --retention-days 30",
		"tcld namespace search-attributes add --namespace "+name+" --search-attribute DrydockNode=Keyword")

	// Somebody does it elsewhere, and it is seen though nothing is listed.
	var names []string
	for _, attribute := range api.SearchAttributes {
		names = append(names, attribute.Name)
	}
	if err := namespace.AddAttributes(s.ctx, s.temporal, name, names); err != nil {
		t.Fatal(err)
	}
	if err := namespace.Retain(s.ctx, s.temporal, name, 40*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	s.eventually("nothing is missing", func() error {
		if r := s.drydock(append([]string{"setup"}, to...)...); r.status != 0 {
			return errors.New(r.out())
		}
		return nil
	})
	report := s.setup(0, append(to, "--apply")...)
	if got := inState(report, setup.Made); got != "" {
		t.Errorf("made are %s", got)
	}
	if is, err := namespace.Describe(context.WithoutCancel(s.ctx), s.temporal, name); err != nil || is.Retention != 40*24*time.Hour {
		t.Errorf("the retention is %s, %v", is.Retention, err)
	}
}
