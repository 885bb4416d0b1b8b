package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

const loopback = "127.0.0.1"

// reservedPort is a loopback port that stays ours from the choice to the end:
// the socket is bound with SO_REUSEPORT but never listens, so no other process
// is given the port, while a component that also asks for SO_REUSEPORT can
// listen on it. Choosing a port by opening and closing a listener would leave a
// gap in which another cluster, or any outgoing connection, takes it.
type reservedPort struct {
	number int
	fd     int
}

// reservePort reserves the given port, or a free one for 0.
func reservePort(number int) (*reservedPort, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: open a socket: %w", err)
	}
	port, err := bindShared(fd, number)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reserve port %s: %w", hostPort(number), err), unix.Close(fd))
	}
	return &reservedPort{number: port, fd: fd}, nil
}

func bindShared(fd, number int) (int, error) {
	// Reuse of addresses is on for the bind alone, so that connections that
	// linger from a run before do not block a fixed port; left on, it would let
	// a second cluster reserve the same port.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 0); err != nil {
		return 0, err
	}
	// Sharing is allowed only now: the bind itself must be exclusive.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	inet, ok := bound.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("bound to an unexpected address %v", bound)
	}
	return inet.Port, nil
}

func (p *reservedPort) release() { _ = unix.Close(p.fd) }

func (p *reservedPort) String() string { return strconv.Itoa(p.number) }

// url is the address of whatever listens on the port; all of it is TLS.
func (p *reservedPort) url() string { return "https://" + hostPort(p.number) }

func hostPort(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// clusterPorts are the ports one cluster needs.
type clusterPorts struct {
	etcdClient, etcdPeer, apiServer, controllerManager, scheduler *reservedPort
}

// reserveClusterPorts reserves all ports; apiServer is 0 for a free one.
func reserveClusterPorts(apiServer int) (*clusterPorts, error) {
	p := &clusterPorts{}
	for _, want := range []struct {
		port   **reservedPort
		number int
	}{
		// The one that may be asked for goes first, before a free one takes it.
		{&p.apiServer, apiServer},
		{&p.etcdClient, 0}, {&p.etcdPeer, 0}, {&p.controllerManager, 0}, {&p.scheduler, 0},
	} {
		port, err := reservePort(want.number)
		if err != nil {
			p.release()
			return nil, err
		}
		*want.port = port
	}
	return p, nil
}

func (p *clusterPorts) release() {
	for _, port := range []*reservedPort{p.apiServer, p.etcdClient, p.etcdPeer, p.controllerManager, p.scheduler} {
		if port != nil {
			port.release()
		}
	}
}
