package worker

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/activities/nodeevent"
	profileactivity "drydock.dev/drydock/activities/profile"
	"drydock.dev/drydock/activities/profile/facts"
	"drydock.dev/drydock/activities/profile/job"
	"drydock.dev/drydock/config"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/notify/notice"
	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/cel"
	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/conf"
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
	report, jobs, err := lintProfiles(path)
	if err != nil {
		o.Logger.Warn("the file of profiles cannot be read: no profile is evaluated until it can be", "file", path, "error", err)
		return
	}
	for _, p := range report.Problems {
		o.Logger.Warn("the file of profiles is not valid, and is not used", "file", path, "at", p.Path, "problem", p.Text, "next", p.Next)
	}
	for _, p := range jobs {
		o.Logger.Warn("a Job of the file of profiles cannot run: transitions that run it fail", "file", path, "at", p.Path, "problem", p.Text)
	}
	if n := len(report.Warnings); n > 0 {
		o.Logger.Info("the file of profiles has warnings: \"drydock profile lint FILE\" shows them", "file", path, "warnings", n)
	}
}

// tryProfiles is an error that joins all that is wrong with the file of profiles, and with the manifests of its Jobs.
func tryProfiles(c config.Profiles) error {
	if c.File == "" {
		return nil
	}
	report, jobs, err := lintProfiles(c.File)
	if err != nil {
		return fmt.Errorf("profiles.file: %w", err)
	}
	var problems []error
	for _, p := range append(report.Problems, jobs...) {
		problems = append(problems, fmt.Errorf("profiles.file: %s: %w", c.File, p))
	}
	return errors.Join(problems...)
}

// lintProfiles says what is wrong with the file, and where that is nothing with the manifests of its Jobs.
func lintProfiles(path string) (report profile.Report, jobs []conf.Problem, err error) {
	file, err := os.Open(path)
	if err != nil {
		return report, nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	// What is too long is a problem like others.
	text, err := io.ReadAll(io.LimitReader(file, conf.MaxFile+1))
	if err != nil {
		return report, nil, err
	}
	report = profile.Lint(text, profileEnvironment())
	if len(report.Problems) > 0 {
		return report, nil, nil
	}
	config, err := profile.Load(text, profileEnvironment())
	if err != nil {
		return report, nil, err
	}
	all := config.Jobs()
	for _, at := range slices.Sorted(maps.Keys(all)) {
		if err := job.Check(all[at]); err != nil {
			jobs = append(jobs, conf.Problem{Path: at, Text: err.Error()})
		}
	}
	return report, jobs, nil
}

// profileActivities are those of profiles, for a worker that has some.
func profileActivities(o Options, kube kubeClient, to connection, events nodeevent.Recorder, registry prometheus.Registerer) *profileactivity.Activities {
	agent := "drydock-worker/" + o.Version
	a := &profileactivity.Activities{
		Nodes: k8s.NewWholeNodes(kube), Defaults: o.Config.Defaults, Temporal: to.client, Namespace: to.namespace, Home: to.home, Events: events,
		Facts: &facts.Gatherer{Client: kube, Agent: agent}, Sender: &notice.Sender{Client: kube, Agent: agent}, Counts: profileactivity.NewMetrics(registry, kube, o.Logger),
	}
	if path := o.Config.Profiles.File; path != "" {
		a.File = &profileactivity.File{Path: path, Environment: profileEnvironment()}
	}
	return a
}
