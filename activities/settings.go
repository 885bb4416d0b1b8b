package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
)

// Settings tells workflows what the worker is configured to: workflow code must not read configuration itself.
type Settings struct {
	Temporal  client.Client
	Namespace string
	// Defaults are the configured defaults of maintenances, as JSON.
	Defaults json.RawMessage
	// Attributes are the names of the search attributes to use, all of type Keyword.
	Attributes []string

	mu         sync.Mutex
	registered bool
	asked      time.Time
}

// Prepared is what a maintenance needs to know before it begins.
type Prepared struct {
	Defaults json.RawMessage `json:"defaults,omitempty"`
	// SearchAttributes: the namespace has them. To set an unregistered one would fail the workflow task for ever.
	SearchAttributes bool `json:"searchAttributes,omitempty"`
}

// askAgain is how often a worker looks whether somebody registered the search attributes meanwhile.
const askAgain = time.Minute

// Prepare tells a maintenance the worker's defaults and whether it may set search attributes.
func (s *Settings) Prepare(ctx context.Context) (Prepared, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.registered && time.Since(s.asked) > askAgain {
		missing, err := s.missing(ctx)
		if err != nil {
			activity.GetLogger(ctx).Warn("search attributes not known", "error", err)
		}
		s.registered, s.asked = err == nil && len(missing) == 0, time.Now()
	}
	return Prepared{Defaults: s.Defaults, SearchAttributes: s.registered}, nil
}

// Register adds the search attributes that the namespace lacks. An error means that maintenances run without them.
func (s *Settings) Register(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing, err := s.missing(ctx)
	if err == nil && len(missing) > 0 {
		add := map[string]enums.IndexedValueType{}
		for _, name := range missing {
			add[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
		}
		_, err = s.Temporal.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
			Namespace: s.Namespace, SearchAttributes: add,
		})
		var exists *serviceerror.AlreadyExists
		if errors.As(err, &exists) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("registering search attributes in namespace %s: %w", s.Namespace, err)
	}
	// A server may take a minute to accept what was just added, and a maintenance that uses it earlier would stall.
	s.registered, s.asked = len(missing) == 0, time.Now()
	return nil
}

func (s *Settings) missing(ctx context.Context) ([]string, error) {
	have, err := s.Temporal.OperatorService().ListSearchAttributes(ctx,
		&operatorservice.ListSearchAttributesRequest{Namespace: s.Namespace})
	if err != nil {
		return nil, fmt.Errorf("listing search attributes of namespace %s: %w", s.Namespace, err)
	}
	var missing []string
	for _, name := range s.Attributes {
		if have.CustomAttributes[name] != enums.INDEXED_VALUE_TYPE_KEYWORD {
			missing = append(missing, name)
		}
	}
	return missing, nil
}
