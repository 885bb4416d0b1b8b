package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"drydock.dev/drydock/deploy/devstack"
)

// stopAll stops the bridge, the worker, which hands its drains over, and then Temporal.
func stopAll(ctx context.Context, o options) error {
	own()
	f := folder(o.folder)
	if _, err := os.Stat(o.folder); errors.Is(err, fs.ErrNotExist) {
		o.say("Nothing was ever up in %s.", o.folder)
		return nil
	}
	lock, err := f.open()
	if err != nil {
		return err
	}
	defer lock.Close()
	remembered, err := f.load()
	if err != nil {
		return err
	}
	tellOfMaintenances(ctx, o, remembered)
	var problems []error
	for _, name := range []string{"bridge", "worker", "temporal"} {
		if name == "bridge" && !f.service(name).wasStarted() {
			continue
		}
		stopped, stale, err := f.service(name).stop(ctx)
		switch {
		case stopped:
			o.say("%s is stopped.", name)
		case stale:
			o.say("%s had died before; nothing else was touched.", name)
		case err == nil:
			o.say("%s does not run.", name)
		}
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	o.say("Everything is kept in %s; make up%s goes on from there.", o.folder, o.again)
	return nil
}

// asksWithin bounds the question for maintenances.
const asksWithin = 30 * time.Second

// tellOfMaintenances says which nodes stay as they are meanwhile.
func tellOfMaintenances(ctx context.Context, o options, r state) {
	now, file, _, err := folder(o.folder).service("temporal").look()
	if err != nil || now == nil {
		if file != nil {
			file.Close()
		}
		return // it is said when it is stopped
	}
	ctx, cancel := context.WithTimeout(ctx, asksWithin)
	defer cancel()
	s := &site{options: o, folder: folder(o.folder), cluster: &cluster{}, temporal: &devstack.Temporal{Address: loopback(r.Ports.Temporal)}}
	cmd, err := s.drydock(ctx, "list", "-o", "name")
	if err == nil {
		cmd.Stdout = nil
		var names []byte
		if names, err = cmd.Output(); err == nil {
			if nodes := strings.Fields(string(names)); len(nodes) > 0 {
				o.say("Maintenances run, and their nodes stay as they are until make up: %s.", strings.Join(nodes, ", "))
			}
			return
		}
	}
	o.say("Which maintenances run is not known: %v.", err)
}
