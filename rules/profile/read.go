package profile

import (
	"slices"
	"strings"

	"drydock.dev/drydock/rules/profile/chain"
	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/rules/profile/notice"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/profile/trigger"
)

// reader reads a configuration: what is wrong with it, and what is worth a warning.
type reader struct {
	config             *Config
	problems, warnings conf.Problems
	environment        Environment
	// used are the instances that a chain has, by section and name.
	used map[string]bool
}

// The sections of instances.
const (
	checks   = "check"
	triggers = "trigger"
	notices  = "notify"
)

func read(file []byte, e Environment) *reader {
	r := &reader{config: &Config{
		checks: map[string]Instance[check.Check]{}, triggers: map[string]Instance[trigger.Trigger]{}, notices: map[string]Instance[Notification]{},
	}, environment: e, used: map[string]bool{}}
	for _, repeated := range conf.Repeated(file) {
		r.warnings.Add("", "take one of them away", "a key is there twice, and the last counts: %s", repeated)
	}
	if conf.HasMore(file) {
		r.warnings.Add("", "put all into the first", "there is another document after a ---, and it is ignored")
	}
	top := conf.Read(file, e.Variable, &r.problems)
	if top.Absent() {
		return r // what it lacks says no more
	}
	intervals := top.Object("intervals")
	r.config.Requeue = intervals.RequiredDuration("requeue", "how often nodes are evaluated, such as 1m")
	if r.config.Requeue < 0 {
		intervals.Refuse("requeue", "write how often nodes are evaluated, such as 1m", "%s is negative", r.config.Requeue)
	}
	dashboard := top.Object("dashboard")
	r.config.LabelFilter = dashboard.Texts("labelFilter")
	r.instances(top.Object("instances"))
	r.profiles(top)
	r.unknown(intervals, map[string]string{"notify": "write the interval into the schedule of each notification"})
	r.unknown(dashboard, nil)
	r.unknown(top, map[string]string{"keys": "the keys on nodes are fixed: take it away"})
	r.unused()
	if e.AllowUnset {
		r.forgive()
	}
	return r
}

// forgive makes warnings of the variables that have no value.
func (r *reader) forgive() {
	var problems conf.Problems
	for _, p := range r.problems.List() {
		if p.Variable != "" {
			r.warnings.Note(p)
			continue
		}
		problems.Note(p)
	}
	r.problems = problems
}

// unknown warns of keys that nobody reads; next says for those of older versions what to do in place of them.
func (r *reader) unknown(o *conf.Object, legacy map[string]string) {
	for _, key := range o.Unknown() {
		if next := legacy[key]; next != "" {
			r.warnings.Add(o.At(key), next, "it is of an older version, and ignored")
			continue
		}
		r.warnings.Add(o.At(key), "correct it, or take it away", "there is no such key, and it is ignored")
	}
}

func (r *reader) instances(o *conf.Object) {
	for n, each := range o.Objects(checks, "name") {
		name, kind := r.name(each)
		config := each.Object("config")
		made, known := check.Read(kind, config, r.environment.Environment)
		i := Instance[check.Check]{Name: name, Kind: kind, Of: made, path: each.Path, at: n, made: known, notBuilt: check.NotBuilt(kind)}
		r.kind(each, config, checks, kind, known, i.notBuilt, check.Kinds())
		r.ofCheck(config, kind, made)
		declare(r, r.config.checks, i)
	}
	for n, each := range o.Objects(triggers, "name") {
		name, kind := r.name(each)
		config := each.Object("config")
		made, known := trigger.Read(kind, config)
		i := Instance[trigger.Trigger]{Name: name, Kind: kind, Of: made, path: each.Path, at: n, made: known, notBuilt: trigger.NotBuilt(kind)}
		r.kind(each, config, triggers, kind, known, i.notBuilt, trigger.Kinds())
		for _, key := range []string{"deletionTimeout", "evictionTimeout"} {
			if kind == "eviction" && config.Has(key) {
				r.warnings.Add(config.At(key), "take it away", "it is ignored: a drain goes on until the node is empty")
			}
		}
		declare(r, r.config.triggers, i)
	}
	for n, each := range o.Objects(notices, "name") {
		name, kind := r.name(each)
		config := each.Object("config")
		made, known := notice.Read(kind, config)
		i := Instance[Notification]{Name: name, Kind: kind, Of: Notification{Notice: made, Schedule: r.schedule(each)}, path: each.Path, at: n, made: known}
		r.kind(each, config, notices, kind, known, false, notice.Kinds())
		declare(r, r.config.notices, i)
	}
	r.unknown(o, nil)
}

// name reads what identifies an instance.
func (r *reader) name(o *conf.Object) (name, kind string) {
	name, kind = o.Text("name"), o.Required("type", "the kind")
	switch {
	case o.Absent(): // that is a problem already
	case name == "":
		r.warnings.Add(o.At("name"), "give it a name", "without a name no chain can have it")
	case o.IsBool("name"):
		r.warnings.Add(o.At("name"), inQuotes, "its name is read as %s", name)
	}
	return name, kind
}

// inQuotes is the advice where YAML has read a name as true or false.
const inQuotes = "write it in quotes: y, n, yes, no, on and off are true or false in YAML"

// kind refuses a kind that does not exist, and warns of the keys that a known one ignores.
func (r *reader) kind(o, config *conf.Object, section, kind string, known, notBuilt bool, kinds []string) {
	switch {
	case known:
		r.unknown(config, nil)
	case notBuilt:
		r.warnings.Add(o.At("type"), "take it away; a chain that has it is refused", "%s is not built here", kind)
	case kind != "":
		next := "write one of " + strings.Join(kinds, ", ")
		for _, k := range kinds {
			if strings.EqualFold(k, kind) {
				next = "write " + k
			}
		}
		o.Refuse("type", next, "there is no kind of %s %q", section, kind)
	}
	r.unknown(o, nil)
}

// declare keeps an instance; of two of a name the last counts, as there.
func declare[T any](r *reader, all map[string]Instance[T], i Instance[T]) {
	if first, taken := all[i.Name]; taken && i.Name != "" {
		r.warnings.Add(first.path, "take one of them away", "the name is there again (%s), and the last counts", i.path)
	}
	all[i.Name] = i
}

func (r *reader) schedule(o *conf.Object) notice.Schedule {
	s := o.Object("schedule")
	if s.Absent() {
		s.Refuse("", "write type and config, such as type: periodic", "required: a notification without a schedule is never sent")
		return nil
	}
	kind, config := s.Required("type", "one of "+strings.Join(notice.Schedules, ", ")), s.Object("config")
	made, known := notice.ReadSchedule(kind, config)
	switch {
	case !known && kind != "":
		s.Refuse("type", "write one of "+strings.Join(notice.Schedules, ", "), "there is no schedule %q", kind)
	case known:
		r.unknown(config, nil)
		if config.Absent() {
			r.warnings.Add(s.At("config"), "write config: {} to be able to go back", "maintenance-controller wants it, and the defaults are taken here")
		}
	}
	r.unknown(s, nil)
	return made
}

func (r *reader) profiles(top *conf.Object) {
	const legacy = "write it as an element of transitions, with check, trigger and next"
	for _, each := range top.Objects("profiles", "name") {
		p := Profile{Name: each.Required("name", "the name that is in the label"), stages: map[state.State]Stage{}}
		if err := state.CheckName(p.Name); p.Name != "" && err != nil {
			r.warnings.Add(each.At("name"), "take another: no node can have it", "%s", err)
		}
		for _, s := range state.All() {
			o := each.Object(string(s))
			p.stages[s] = r.stage(o)
			r.unknown(o, map[string]string{checks: legacy, triggers: legacy})
		}
		r.machine(each.Path, p)
		r.unknown(each, nil)
		if at := slices.IndexFunc(r.config.Profiles, func(o Profile) bool { return o.Name == p.Name }); at >= 0 && p.Name != "" {
			r.warnings.Add(each.Path, "take one of them away", "a profile of the name is there before, and the last counts")
			r.config.Profiles = slices.Delete(r.config.Profiles, at, at+1)
		}
		r.config.Profiles = append(r.config.Profiles, p)
	}
	if !r.config.Known(state.DefaultProfile) {
		r.config.Profiles = append(r.config.Profiles, Profile{Name: state.DefaultProfile})
	}
}

func (r *reader) stage(o *conf.Object) Stage {
	s := Stage{Enter: r.triggersIn(o, "enter"), Notify: list(r, o, notices, notices, r.config.notices)}
	for _, each := range o.Objects("transitions", "") {
		t := Transition{Check: r.checkIn(each), Triggers: r.triggersIn(each, "trigger"), Next: state.State(each.Required("next", "the state that it leads to"))}
		if t.Next != "" && !t.Next.Known() {
			each.Refuse("next", "write operational, maintenance-required or in-maintenance", "%.80q is not a state", t.Next)
		}
		r.unknown(each, nil)
		s.Transitions = append(s.Transitions, t)
	}
	return s
}

func (r *reader) checkIn(o *conf.Object) chain.Check {
	text := o.Required("check", "an expression over checks")
	if text == "" {
		return chain.Check{}
	}
	parsed, err := chain.ParseCheck(text)
	if err != nil {
		o.Refuse("check", "write names of checks with &&, ||, ! and parentheses", "%s", err)
		return parsed
	}
	for _, name := range parsed.Names {
		if i, there := r.config.checks[name]; used(r, o, "check", checks, name, i, there) && !chain.Readable(name) {
			r.warnings.Add(o.At("check"), "use letters, digits and _ to be able to go back", "maintenance-controller's expressions cannot read the name %q", name)
		}
	}
	if !parsed.Spaced {
		r.warnings.Add(o.At("check"), "write spaces around operators, in one line, to be able to go back", "maintenance-controller cannot read the expression")
	}
	return parsed
}

func (r *reader) triggersIn(o *conf.Object, key string) []string {
	return list(r, o, key, triggers, r.config.triggers)
}

// list reads names joined by &&, each of which has to be declared.
func list[T any](r *reader, o *conf.Object, key, section string, all map[string]Instance[T]) []string {
	names, err := chain.ParseList(o.Text(key))
	if err != nil {
		o.Refuse(key, "write names with && between them", "%s", err)
		return nil
	}
	for _, name := range names {
		i, there := all[name]
		used(r, o, key, section, name, i, there)
	}
	return names
}

// used notes that a chain has an instance, and refuses one that is not there.
func used[T any](r *reader, o *conf.Object, key, section, name string, i Instance[T], there bool) bool {
	r.used[section+"/"+name] = true
	switch {
	case !there && o.IsBool(key):
		o.Refuse(key, inQuotes, "there is no %s instance %q", section, name)
	case !there:
		o.Refuse(key, "declare it in instances."+section+", or correct the name", "there is no %s instance %q", section, name)
	case i.notBuilt:
		o.Refuse(key, "take it out of the chain", "%s instance %q is of kind %s, which is not built here", section, name, i.Kind)
	}
	return there
}
