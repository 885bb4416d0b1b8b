package site

import (
	"fmt"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/audit/file"
	"drydock.dev/drydock/rules/record"
)

// RecordOf waits for the audit record of a run.
func (s *Site) RecordOf(path, run string) (kept record.Record) {
	s.Helper()
	s.Eventually("the record of run "+run+" is kept", func() error {
		records, err := file.Read(path)
		if err != nil {
			return err
		}
		for _, kept = range records {
			if kept.RunID == run {
				return nil
			}
		}
		return fmt.Errorf("%d others are", len(records))
	})
	return kept
}

// SchedulerID is the ID of the site's scheduler.
func (s *Site) SchedulerID() string { return api.SchedulerID(s.Cluster) }
