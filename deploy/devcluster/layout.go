package main

import "path/filepath"

// layout names the files of one cluster's directory.
type layout struct {
	dir string
}

func (l layout) pidFile() string             { return filepath.Join(l.dir, "devcluster.pid") }
func (l layout) kubeconfig() string          { return filepath.Join(l.dir, "kubeconfig") }
func (l layout) etcdData() string            { return filepath.Join(l.dir, "etcd") }
func (l layout) pki() string                 { return filepath.Join(l.dir, "pki") }
func (l layout) logs() string                { return filepath.Join(l.dir, "logs") }
func (l layout) log(component string) string { return filepath.Join(l.logs(), component+".log") }
func (l layout) config() string              { return filepath.Join(l.dir, "config") }
func (l layout) packing() string             { return filepath.Join(l.config(), "scheduler.yaml") }
func (l layout) auditPolicy() string         { return filepath.Join(l.config(), "audit-policy.yaml") }
func (l layout) componentKubeconfig(component string) string {
	return filepath.Join(l.config(), component+".kubeconfig")
}
