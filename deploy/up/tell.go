package main

import (
	"cmp"
	"fmt"
	"strings"
)

// tell says where everything is, and what to do first.
func (s *site) tell(r state, account string) error {
	exports := fmt.Sprintf("export TEMPORAL_ADDRESS=%s TEMPORAL_NAMESPACE=default DRYDOCK_CONFIG=%s\n", s.temporal.Address, quoted(s.folder.path(configFile)))
	if err := s.folder.write(environment, []byte(exports)); err != nil {
		return err
	}
	node := "NODE"
	if len(s.cluster.nodes) > 0 {
		node = s.cluster.nodes[0]
	}
	drydock := ".bin/drydock --context " + quoted(s.cluster.context)
	s.say(`
Drydock is up.
  cluster        %[1]s
  Temporal UI    http://%[2]s
  Temporal       %[3]s, namespace default, database %[4]s
  worker         http://%[5]s/metrics, as %[6]s
  configuration  %[7]s (make up again once it is changed)
  audit records  %[8]s
  logs           %[9]s
                 %[10]s

A first maintenance:
  . %[11]s
  %[12]s preflight %[13]s
  %[12]s start %[13]s --reason "a first look" --wait
  %[12]s status %[13]s
  %[12]s done %[13]s --wait

make down stops it, and make up goes on from there. Temporal is one process here, for one machine: docs/install.md has the rest.`,
		s.cluster, loopback(r.Ports.UI), s.temporal.Address, s.folder.path("temporal.db"), loopback(r.Ports.Worker),
		cmp.Or(account, "you, with the credentials of that context"), s.folder.path(configFile), s.folder.path("audit.jsonl"),
		s.folder.path("temporal.log"), s.folder.path("worker.log"), quoted(s.folder.path(environment)), drydock, node)
	return nil
}

// quoted is a word for a shell.
func quoted(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
