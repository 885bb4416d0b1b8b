package api

import (
	"time"
)

// WindowsChanged is the signal to the scheduler that the windows of a worker's configuration are not those whose openings
// it knows.
type WindowsChanged struct {
	// Digest is that of the worker's windows.
	Digest string `json:"digest"`
	// Since is when the worker was started: of workers with different windows, the one that was started last counts.
	Since time.Time `json:"since,omitzero"`
}

// WindowsKnown says what the scheduler's decisions about windows rest on.
type WindowsKnown struct {
	// At is since when their openings are known, Zones the time zone data that they were computed with.
	At    time.Time `json:"at"`
	Zones string    `json:"zones"`
	// Digest identifies the windows of a configuration. Since is when the worker was started that has them, zero where none
	// said so: then they are some worker's.
	Digest string    `json:"digest"`
	Since  time.Time `json:"since,omitzero"`
}

// WindowsInput asks for the windows of the worker's configuration and their next openings.
type WindowsInput struct {
	// Name is the only window to tell of; empty is all.
	Name string `json:"name,omitempty"`
	// Next is how many openings to tell, MaxNextOpenings at most; 0 is DefaultNextOpenings.
	Next int `json:"next,omitempty"`
	// At is the time from which on; the workflow fills it in.
	At time.Time `json:"at,omitzero"`
}

// DefaultNextOpenings and MaxNextOpenings are how many openings of each window are listed.
const (
	DefaultNextOpenings = 3
	MaxNextOpenings     = 100
)
