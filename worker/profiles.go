package worker

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"drydock/activities/nodeevent"
	profileactivity "drydock/activities/profile"
	"drydock/activities/profile/facts"
	"drydock/config"
	"drydock/k8s"
	"drydock/notify/notice"
	"drydock/rules/profile"
	"drydock/rules/profile/cel"
	"drydock/rules/profile/check"
	"drydock/rules/profile/conf"
)

// profileEnvironment is what the file of profiles is read with.
func profileEnvironment() profile.Environment {
	return profile.Environment{Variable: os.LookupEnv, Environment: check.Environment{CEL: cel.Compile}}
}

// warnOfProfiles logs what is wrong with the file of profiles when the worker starts. The worker goes on: the file is read anew at
// each evaluation, so that it needs no other start once it is mended.
func warnOfProfiles(o Options) {
	path := o.Config.Profiles.File
	if path == "" {
		return
	}
	report, err := lintProfiles(path)
	if err != nil {
		o.Logger.Warn("the file of profiles cannot be read: none is evaluated until it can", "file", path, "error", err)
		return
	}
	for _, p := range report.Problems {
		o.Logger.Warn("the file of profiles is not taken", "file", path, "at", p.Path, "problem", p.Text, "next", p.Next)
	}
	if n := len(report.Warnings); n > 0 {
		o.Logger.Info("there is more to say of the file of profiles: \"drydock profile lint FILE\" shows it", "file", path, "warnings", n)
	}
}

// tryProfiles is an error that joins all that is wrong with the file of profiles.
func tryProfiles(c config.Profiles) error {
	if c.File == "" {
		return nil
	}
	report, err := lintProfiles(c.File)
	if err != nil {
		return fmt.Errorf("profiles.file: %w", err)
	}
	var problems []error
	for _, p := range report.Problems {
		problems = append(problems, fmt.Errorf("profiles.file: %s: %w", c.File, p))
	}
	return errors.Join(problems...)
}

func lintProfiles(path string) (profile.Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return profile.Report{}, err
	}
	defer func() { _ = file.Close() }() // it was only read
	// What is too long is a problem like others.
	text, err := io.ReadAll(io.LimitReader(file, conf.MaxFile+1))
	if err != nil {
		return profile.Report{}, err
	}
	return profile.Lint(text, profileEnvironment()), nil
}

// profileActivities are those of profiles, for a worker that has some.
func profileActivities(o Options, kube kubeClient, to connection, events nodeevent.Recorder, registry prometheus.Registerer) *profileactivity.Activities {
	agent := "drydock-worker/" + o.Version
	a := &profileactivity.Activities{
		Nodes: k8s.NewWholeNodes(kube), Temporal: to.client, Namespace: to.namespace, Home: to.home, Events: events,
		Facts: &facts.Gatherer{Client: kube, Agent: agent}, Sender: &notice.Sender{Client: kube, Agent: agent}, Counts: profileactivity.NewMetrics(registry, kube, o.Logger),
	}
	if path := o.Config.Profiles.File; path != "" {
		a.File = &profileactivity.File{Path: path, Environment: profileEnvironment()}
	}
	return a
}
