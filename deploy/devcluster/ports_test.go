package main

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReservedPortIsKept(t *testing.T) {
	port := mustReserve(t, 0)
	if _, err := net.Listen("tcp", hostPort(port.number)); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a stranger's listen on a reserved port: %v, want it refused", err)
	}
	if other, err := reservePort(port.number); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second reservation: %v, %v, want it refused", other, err)
	}
}

func TestComponentListensOnReservedPort(t *testing.T) {
	port := mustReserve(t, 0)
	// As a component does with --permit-port-sharing, and again after a restart.
	for range 2 {
		listener := mustListenShared(t, port)
		client, err := net.Dial("tcp", hostPort(port.number))
		if err != nil {
			t.Fatalf("connect to a listener on a reserved port: %v", err)
		}
		server, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		// The server closes first and so keeps the lingering connection.
		for _, closer := range []net.Conn{server, client} {
			_ = closer.Close()
		}
		_ = listener.Close()
	}
	port.release()
	// A new cluster may ask for the port of the former one at once.
	again := mustReserve(t, port.number)
	_ = mustListenShared(t, again).Close()
}

func TestClusterPortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 20 {
		ports, err := reserveClusterPorts(0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ports.release)
		for _, port := range []*reservedPort{
			ports.apiServer, ports.etcdClient, ports.etcdPeer, ports.controllerManager, ports.scheduler,
		} {
			if seen[port.number] {
				t.Fatalf("port %d was given out twice", port.number)
			}
			seen[port.number] = true
		}
	}
}

func TestClusterPortsFixedPortTaken(t *testing.T) {
	taken := mustReserve(t, 0)
	if _, err := reserveClusterPorts(taken.number); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("reserve a port that is taken: %v, want it refused", err)
	}
}

func mustReserve(t *testing.T, number int) *reservedPort {
	t.Helper()
	port, err := reservePort(number)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(port.release)
	return port
}

func mustListenShared(t *testing.T, port *reservedPort) net.Listener {
	t.Helper()
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		var failure error
		err := conn.Control(func(fd uintptr) {
			failure = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, failure)
	}}
	listener, err := config.Listen(context.Background(), "tcp", hostPort(port.number))
	if err != nil {
		t.Fatalf("listen on a reserved port: %v", err)
	}
	return listener
}
