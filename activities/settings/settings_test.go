package settings

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/grpc"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/policy"
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/rules/period"
	rulespolicy "drydock.dev/drydock/rules/policy"
)

// operator is a Temporal server's list of search attributes.
type operator struct {
	operatorservice.OperatorServiceClient
	have      map[string]enums.IndexedValueType
	list, add error
	asked     int
}

func (o *operator) ListSearchAttributes(context.Context, *operatorservice.ListSearchAttributesRequest, ...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error) {
	o.asked++
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: o.have}, o.list
}

func (o *operator) AddSearchAttributes(_ context.Context, in *operatorservice.AddSearchAttributesRequest, _ ...grpc.CallOption) (*operatorservice.AddSearchAttributesResponse, error) {
	if o.add == nil {
		for name, kind := range in.SearchAttributes {
			o.have[name] = kind
		}
	}
	return &operatorservice.AddSearchAttributesResponse{}, o.add
}

func settingsWith(o *operator) *Activities {
	client := &mocks.Client{}
	client.On("OperatorService").Return(o)
	client.On("WorkflowService").Return(&activitytest.Histories{Err: errors.New("away")})
	return &Activities{Temporal: client, Namespace: "default", Starters: execution.NewStarters(client, "default"), Defaults: json.RawMessage(`{"readyTimeout":"2h"}`), Attributes: []string{"DrydockNode", "DrydockPhase"}}
}

func prepare(t *testing.T, s *Activities) Prepared {
	t.Helper()
	env := activitytest.Environment()
	env.RegisterActivity(s.Prepare)
	value, err := env.ExecuteActivity(s.Prepare, json.RawMessage(`{"node":"worker-1"}`))
	if err != nil {
		t.Fatal(err)
	}
	var prepared Prepared
	if err := value.Get(&prepared); err != nil {
		t.Fatal(err)
	}
	if string(prepared.Defaults) != `{"readyTimeout":"2h"}` {
		t.Errorf("defaults %s", prepared.Defaults)
	}
	return prepared
}

func keyword(names ...string) map[string]enums.IndexedValueType {
	have := map[string]enums.IndexedValueType{}
	for _, name := range names {
		have[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
	}
	return have
}

func TestSearchAttributesAreUsedOnlyOnceTheyAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &operator{have: keyword("DrydockNode")}
		s := settingsWith(o)
		for range 2 {
			if prepare(t, s).SearchAttributes {
				t.Error("an attribute that is not registered is used")
			}
		}
		if o.asked != 1 {
			t.Errorf("asked %d times at once", o.asked)
		}
		o.have["DrydockPhase"] = enums.INDEXED_VALUE_TYPE_TEXT
		time.Sleep(askAgain + time.Second)
		if prepare(t, s).SearchAttributes {
			t.Error("an attribute of another type is used")
		}
		o.have["DrydockPhase"] = enums.INDEXED_VALUE_TYPE_KEYWORD
		time.Sleep(askAgain + time.Second)
		for range 2 {
			if !prepare(t, s).SearchAttributes {
				t.Error("registered attributes are not used")
			}
		}
		if o.asked != 3 {
			t.Errorf("asked %d times", o.asked)
		}
	})
}

func TestServerThatDoesNotTellItsAttributesStopsNothing(t *testing.T) {
	if prepare(t, settingsWith(&operator{list: errors.New("no permission")})).SearchAttributes {
		t.Error("attributes of which nothing is known are used")
	}
}

func TestRegisterAddsWhatIsMissingAndIsThenPatient(t *testing.T) {
	for name, c := range map[string]struct {
		o      *operator
		failed bool
		used   bool
	}{
		"there already":            {&operator{have: keyword("DrydockNode", "DrydockPhase")}, false, true},
		"added: not used at once":  {&operator{have: keyword()}, false, false},
		"added by another":         {&operator{have: keyword(), add: serviceerror.NewAlreadyExists("there")}, false, false},
		"may not be added":         {&operator{have: keyword(), add: serviceerror.NewPermissionDenied("no", "")}, true, false},
		"nothing is known of them": {&operator{list: errors.New("away")}, true, false},
	} {
		s := settingsWith(c.o)
		if err := s.Register(t.Context()); (err != nil) != c.failed {
			t.Errorf("%s: %v", name, err)
		}
		if got := prepare(t, s).SearchAttributes; got != c.used {
			t.Errorf("%s: used %v", name, got)
		}
	}
}

func TestPrepareReturnsWhatThePolicyRefuses(t *testing.T) {
	for require, want := range map[string]string{
		`maintenance.readyTimeout == duration("2h")`: "", // the worker's default
		`maintenance.ticket != ""`:                   `policy rule: it requires maintenance.ticket != ""`,
	} {
		rules, err := rulespolicy.Compile([]rulespolicy.Rule{{Name: "rule", Require: require}})
		if err != nil {
			t.Fatal(err)
		}
		s := settingsWith(&operator{have: keyword()})
		s.Judge = &policy.Judge{Policy: rules}
		if prepared := prepare(t, s); !prepared.Policy || prepared.Refused != want {
			t.Errorf("%s: %+v", require, prepared)
		}
	}
	if prepared := prepare(t, settingsWith(&operator{have: keyword()})); prepared.Policy || prepared.Refused != "" {
		t.Errorf("without a policy: %+v", prepared)
	}
}

func TestPrepareReturnsWhoStartedTheMaintenance(t *testing.T) {
	s := settingsWith(&operator{have: keyword()})
	if prepared := prepare(t, s); prepared.Starter != nil {
		t.Errorf("nothing can be read, and %+v started it", prepared.Starter)
	}
	temporal := &mocks.Client{}
	temporal.On("OperatorService").Return(&operator{have: keyword()})
	temporal.On("WorkflowService").Return(&activitytest.Histories{First: map[string]*historypb.HistoryEvent{
		activitytest.RunID: activitytest.Started("ann@desk", nil),
	}})
	s.Temporal, s.Starters = temporal, execution.NewStarters(temporal, "default")
	if prepared := prepare(t, s); prepared.Starter == nil || prepared.Starter.Identity != "ann@desk" {
		t.Errorf("%+v started it", prepared.Starter)
	}
}

func TestTheAttributeForKindsIsUsedWhereItIs(t *testing.T) {
	for _, c := range []struct {
		have       []string
		all, kinds bool
	}{
		{[]string{"DrydockNode", "DrydockPhase"}, true, false},
		{[]string{"DrydockNode", "DrydockPhase", "DrydockKind"}, true, true},
		{[]string{"DrydockKind"}, false, true},
	} {
		s := settingsWith(&operator{have: keyword(c.have...)})
		s.Attributes = append(s.Attributes, "DrydockKind")
		if got := prepare(t, s); got.SearchAttributes != c.all || got.Kinds != c.kinds {
			t.Errorf("with %v: %+v", c.have, got)
		}
	}
}

func TestWindowsThatAreNotConfiguredAreNamed(t *testing.T) {
	s := settingsWith(&operator{have: map[string]enums.IndexedValueType{}})
	s.Windows = []string{"nights"}
	env := activitytest.Environment()
	env.RegisterActivity(s.Prepare)
	for input, want := range map[string]string{
		`{"node":"n","windows":["nights"]}`:         "",
		`{"node":"n","windows":["nights", "gone"]}`: `windows[1]: the worker's configuration has no window "gone" (windows)`,
	} {
		value, err := env.ExecuteActivity(s.Prepare, json.RawMessage(input))
		if err != nil {
			t.Fatal(err)
		}
		var prepared Prepared
		if err := value.Get(&prepared); err != nil || prepared.Unknown != want {
			t.Errorf("%s: %q, %v", input, prepared.Unknown, err)
		}
	}
}

func TestWorkThatReadyTimeoutWouldEndIsRefused(t *testing.T) {
	s := settingsWith(&operator{have: map[string]enums.IndexedValueType{}})
	var err error
	if s.Runner, err = checks.New(checks.Config{Work: checks.Works{
		"swap": {WorkSettings: checks.WorkSettings{Signal: &struct{}{}, Deadline: period.Duration(3 * time.Hour)}},
	}}, nil, "test"); err != nil {
		t.Fatal(err)
	}
	env := activitytest.Environment()
	env.RegisterActivity(s.Prepare)
	for input, want := range map[string]string{
		`{"node":"n","work":"swap","readyTimeout":"3h"}`: "",
		`{"node":"n","work":"swap","readyTimeout":"0s"}`: "",
		`{"node":"n","work":"swap"}`:                     "readyTimeout: 2h0m0s is shorter than the deadline of work swap (3h0m0s), which would be ended half way: give a longer one, or 0s",
		`{"node":"n","work":"swop"}`:                     `work: there is no "swop"; the worker knows swap (work in its configuration)`,
	} {
		value, err := env.ExecuteActivity(s.Prepare, json.RawMessage(input))
		if err != nil {
			t.Fatal(err)
		}
		var prepared Prepared
		if err := value.Get(&prepared); err != nil || prepared.Unknown != want {
			t.Errorf("%s: %q, %v", input, prepared.Unknown, err)
		}
	}
}
