package worker

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drydock.dev/drydock/config"
)

// profilesFile is a file of profiles, whose path it returns.
func profilesFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "maintenance.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAWorkerWarnsOfItsProfiles(t *testing.T) {
	t.Setenv("DRYDOCK_TEST_HOOK", "https://hooks.example/secret")
	const notify = "instances: {notify: [{type: slack, name: s, config: {hook: \"${DRYDOCK_TEST_HOOK}\", channel: c, message: m}, schedule: {type: periodic, config: {}}}]}\n"
	jobOf := func(manifest string) string {
		return profilesFile(t, "intervals: {requeue: 1m}\ninstances: {trigger: [{type: job, name: flash, config: {templateFile: "+manifest+", namespace: ops}}]}\n"+
			"profiles: [{name: p, operational: {enter: flash}}]\n")
	}
	const jobManifest = "apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: {containers: [{name: c, image: i}]}}}\n"
	for name, c := range map[string]struct {
		file  string
		lines int
		want  []string
	}{
		"none":       {"", 0, nil},
		"fine":       {profilesFile(t, "intervals: {requeue: 1m}\n"), 0, nil},
		"missing":    {filepath.Join(t.TempDir(), "none.yaml"), 1, []string{"level=WARN", "none.yaml: no such file"}},
		"a folder":   {t.TempDir(), 1, []string{"level=WARN", "is a directory"}},
		"wrong":      {profilesFile(t, "intervals: {}\nprofiles: [{}]\n"), 2, []string{"at=intervals.requeue", "at=profiles[0].name"}},
		"a variable": {profilesFile(t, "intervals: {requeue: 1m}\n"+notify+"profiles: [{name: p, operational: {notify: s}}]\n"), 0, nil},
		"CEL": {profilesFile(t, "intervals: {requeue: 1m}\ninstances: {check: [{type: cel, name: c, config: {expression: \"1 + 1\"}}]}\n"+
			"profiles: [{name: p, operational: {transitions: [{check: c, next: operational}]}}]\n"), 1, []string{"want true or false"}},
		"a Job":       {jobOf(profilesFile(t, jobManifest)), 0, nil},
		"no manifest": {jobOf("/none/flash.yaml"), 1, []string{"level=WARN", "instances.trigger[0]", "/none/flash.yaml: no such file"}},
		"wrong Job":   {jobOf(profilesFile(t, "apiVersion: batch/v1\nkind: CronJob\n")), 1, []string{"want batch/v1 Job", "required: what the Job runs"}},
		"ignored":     {profilesFile(t, "intervals: {requeue: 1m, notify: 1h}\n"), 1, []string{"level=INFO", "drydock profile lint FILE", "warnings=1"}},
		"too long":    {profilesFile(t, strings.Repeat("# more\n", 1<<18)), 1, []string{"more than 1048576 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			o := Options{Config: config.Default(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
			o.Config.Profiles.File = c.file
			warnOfProfiles(o)
			if n := strings.Count(log.String(), "\n"); n != c.lines {
				t.Errorf("%d lines, want %d:\n%s", n, c.lines, log.String())
			}
			for _, want := range c.want {
				if !strings.Contains(log.String(), want) {
					t.Errorf("want %q in\n%s", want, log.String())
				}
			}
			err := tryProfiles(o.Config.Profiles)
			if bad := strings.Contains(log.String(), "level=WARN"); (err != nil) != bad {
				t.Errorf("--check says %v", err)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "profiles.file: ") {
				t.Errorf("%v does not name the field", err)
			}
			if strings.Contains(log.String(), "secret") {
				t.Errorf("what a variable gives is in the log:\n%s", log.String())
			}
		})
	}
}
