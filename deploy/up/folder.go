package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// folder has everything that is kept: the database, the configuration, the logs, and what this file writes.
type folder string

func (f folder) path(name string) string { return filepath.Join(string(f), name) }

// The files in it.
const (
	stateFile      = "state.json"
	lockFile       = "lock"
	configFile     = "drydock.yaml"
	kubeconfigFile = "kubeconfig"

	bridgeKubeconfigFile = "bridge.kubeconfig"
	profileFile          = "temporal.toml"
	environment          = "env"
)

// state is what is remembered from one time to the next.
type state struct {
	// ID tells this folder from another one that serves the same cluster.
	ID string `json:"id,omitempty"`
	// Kubeconfig are the files that the context is in.
	Kubeconfig []string `json:"kubeconfig,omitempty"`
	Context    string   `json:"context,omitempty"`
	// Cluster tells the cluster from another one of the same name.
	Cluster string `json:"cluster,omitempty"`
	// Declined: the worker is to have no account of its own.
	Declined bool `json:"declined,omitempty"`
	// Bridge: a bridge is to run. BridgeAccount is whom it acts as, BridgeDeclined that it is to have no account of its own.
	Bridge         bool   `json:"bridge,omitempty"`
	BridgeAccount  string `json:"bridgeAccount,omitempty"`
	BridgeDeclined bool   `json:"bridgeDeclined,omitempty"`
	Ports          ports  `json:"ports"`
}

// ports are those that are listened on, on the loopback interface; 0 is none yet.
type ports struct {
	Temporal int `json:"temporal"`
	UI       int `json:"ui"`
	Worker   int `json:"worker"`
	Admin    int `json:"admin"`
	// Bridge has the bridge's metrics.
	Bridge       int `json:"bridge,omitempty"`
	BridgeProbes int `json:"bridgeProbes,omitempty"`
}

func (p ports) all() []int {
	return []int{p.Temporal, p.UI, p.Worker, p.Admin, p.Bridge, p.BridgeProbes}
}

// open makes the folder where it is not there, and keeps any other run of this command out of it until the file is closed.
func (f folder) open() (*os.File, error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(f.path(lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("another make up or make down is at work in %s", f)
	}
	return lock, nil
}

func (f folder) load() (s state, err error) {
	data, err := os.ReadFile(f.path(stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", f.path(stateFile), err)
	}
	return s, err
}

func (f folder) save(s state) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return f.write(stateFile, append(data, '\n'))
}

// write puts a file in the place of the one before, whole.
func (f folder) write(name string, data []byte) error {
	next := f.path(name + ".next")
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, f.path(name))
}

// tries is how many ports are looked at for one that is free.
const tries = 100

// usual are the ports that Temporal's and Drydock's documentation has.
var usual = ports{Temporal: 7233, UI: 8233, Worker: 8080, Admin: 8081, Bridge: 8082, BridgeProbes: 8083}

// choose finds a port that nobody listens on: the one that is wanted and no other, or from the remembered or the usual one
// upward. taken are those that are spoken for.
func choose(wanted, remembered, usual int, taken []int) (int, error) {
	if wanted != 0 {
		if err := free(wanted); err != nil {
			return 0, fmt.Errorf("port %d cannot be listened on: %w (without the variable a free one is taken)", wanted, err)
		}
		return wanted, nil
	}
	first := usual
	if remembered != 0 {
		first = remembered
	}
	for port := first; port < first+tries && port <= 65535; port++ {
		if !slices.Contains(taken, port) && free(port) == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free", first, first+tries-1)
}

func free(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // it returns at once
	if err != nil {
		return err
	}
	return l.Close()
}
