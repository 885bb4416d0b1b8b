package record

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
)

// Flaw is what is wrong with records that were kept.
type Flaw string

// The flaws.
const (
	// Unreadable: a line is no record. A writer that was stopped in the middle of one leaves such a line, and writes the
	// record again.
	Unreadable Flaw = "unreadable"
	// Unchained: a record is in no chain.
	Unchained Flaw = "unchained"
	// Changed: a record is not what its writer wrote.
	Changed Flaw = "changed"
	// Unproven: none of the keys has made the record's MAC.
	Unproven Flaw = "unproven"
	// Missing: records that a later one came after are not there.
	Missing Flaw = "missing"
	// Repeated: there is a record of the same number already.
	Repeated Flaw = "repeated"
	// Misplaced: a record stands behind one that was written later.
	Misplaced Flaw = "misplaced"
	// Broken: a record was not written behind the one before it.
	Broken Flaw = "broken"
	// Cut: the records end before the one that is expected.
	Cut Flaw = "cut"
)

// Finding is one thing that is wrong.
type Finding struct {
	Kind Flaw   `json:"kind"`
	File string `json:"file,omitempty"`
	// Line counts from 1; 0 where it is of no line.
	Line   int    `json:"line,omitempty"`
	Writer string `json:"writer,omitempty"`
	Number int64  `json:"number,omitempty"`
	Text   string `json:"text"`
}

// ChainSummary is what there is of one writer's chain. Last and Hash are worth noting: who cuts the end off can hide
// that from everybody but those who know them.
type ChainSummary struct {
	Writer  string `json:"writer"`
	Records int    `json:"records"`
	First   int64  `json:"first"`
	Last    int64  `json:"last"`
	Hash    string `json:"hash"`
}

// Verdict is what became of a verification.
type Verdict struct {
	Intact  bool           `json:"intact"`
	Records int            `json:"records"`
	Chains  []ChainSummary `json:"chains"`
	// Proven: every record was checked with a key.
	Proven       bool      `json:"proven"`
	Findings     []Finding `json:"findings"`
	MoreFindings int       `json:"moreFindings,omitempty"`
}

// MaxFindings bounds those that a verdict lists.
const MaxFindings = 200

// Expected is what somebody has noted of the last record: its number, or its hash, which says more.
type Expected struct {
	Number int64
	Hash   string
}

var hashForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ParseExpected reads a number or a hash.
func ParseExpected(text string) (Expected, error) {
	if hash := strings.ToLower(text); hashForm.MatchString(hash) {
		return Expected{Hash: hash}, nil
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 1 {
		return Expected{}, fmt.Errorf("%q: want the number of a record, or its hash of 64 hexadecimal digits", text)
	}
	return Expected{Number: number}, nil
}

// entry is a record in the place where it was found.
type entry struct {
	Link
	file string
	line int
}

func (e entry) place() string {
	return fmt.Sprintf("%s:%d", e.file, e.line)
}

// trail are the records of one writer, as they were found: those that are what they were, and those that are not.
type trail struct{ intact, changed []entry }

// Verifier checks the lines of audit records, in their order, for what is missing, changed, repeated or out of order.
type Verifier struct {
	keys    [][]byte
	writers []string
	trails  map[string]*trail
	last    string
	verdict Verdict
}

// NewVerifier checks with keys, of which each record has to be proven by one; none proves nothing.
func NewVerifier(keys ...[]byte) *Verifier {
	return &Verifier{keys: keys, trails: map[string]*trail{}, verdict: Verdict{Proven: len(keys) > 0, Chains: []ChainSummary{}, Findings: []Finding{}}}
}

// Line takes the next line of a file.
func (v *Verifier) Line(file string, line int, text []byte) {
	r, err := Decode(text)
	if err != nil {
		v.Damaged(file, line, err)
		return
	}
	digest, err := Digest(text)
	if err != nil {
		v.Damaged(file, line, fmt.Errorf("not an audit record: %w", err))
		return
	}
	v.verdict.Records++
	e := entry{Link: r.Link, file: file, line: line}
	if e.Writer == "" || e.Number < 1 || e.Hash == "" {
		v.found(Unchained, e, "the record has no writer, number or hash: nothing proves that it is what was written")
		return
	}
	t := v.trails[e.Writer]
	if t == nil {
		t = &trail{}
		v.trails[e.Writer] = t
		v.writers = append(v.writers, e.Writer)
	}
	if digest != e.Hash {
		v.found(Changed, e, "the record is not what its hash is of")
		t.changed = append(t.changed, e)
		return
	}
	if len(v.keys) > 0 && !e.provenBy(v.keys) {
		why := "the record's mac is of another key, or forged"
		if e.MAC == "" {
			why = "the record has no mac: it was written without a key, or forged"
		}
		v.found(Unproven, e, why)
	}
	v.last = e.Writer
	t.intact = append(t.intact, e)
}

// Damaged notes what could not be read; line 0 is the end of a file.
func (v *Verifier) Damaged(file string, line int, err error) {
	v.found(Unreadable, entry{file: file, line: line}, err.Error())
}

func (v *Verifier) found(kind Flaw, e entry, text string) {
	if len(v.verdict.Findings) >= MaxFindings {
		v.verdict.MoreFindings++
		return
	}
	v.verdict.Findings = append(v.verdict.Findings, Finding{
		Kind: kind, File: e.file, Line: e.line, Writer: e.Writer, Number: e.Number, Text: bounds.Cut(text, MaxText),
	})
}

// Verdict judges what was taken, and whether it ends as expected.
func (v *Verifier) Verdict(expected ...Expected) Verdict {
	for _, writer := range v.writers {
		v.judge(writer, v.trails[writer])
	}
	for _, want := range expected {
		v.expect(want)
	}
	v.verdict.Intact = len(v.verdict.Findings) == 0
	return v.verdict
}

// judge looks at the numbers and the links of one chain.
func (v *Verifier) judge(writer string, t *trail) {
	present := map[int64]entry{}
	var highest entry
	for _, e := range t.intact {
		first, twice := present[e.Number]
		switch {
		case twice && first.Hash == e.Hash:
			v.found(Repeated, e, "the same record is in "+first.place())
			continue
		case twice:
			v.found(Repeated, e, "another record of this number is in "+first.place())
			continue
		case e.Number < highest.Number:
			v.found(Misplaced, e, fmt.Sprintf("the record stands behind number %d in %s", highest.Number, highest.place()))
		default:
			highest = e
		}
		present[e.Number] = e
	}
	changed := map[int64]bool{}
	for _, e := range t.changed {
		changed[e.Number] = true
	}
	numbers := slices.Sorted(maps.Keys(present))
	for i, number := range numbers {
		if i == 0 {
			v.judgeFirst(present[number])
			continue
		}
		v.judgeNext(present[numbers[i-1]], present[number], changed)
	}
	if len(numbers) > 0 {
		v.verdict.Chains = append(v.verdict.Chains, ChainSummary{
			Writer: writer, Records: len(numbers), First: numbers[0], Last: highest.Number, Hash: highest.Hash,
		})
	}
}

// judgeFirst: a chain may begin with a later number, since old files are removed.
func (v *Verifier) judgeFirst(e entry) {
	if e.Number == 1 && e.Previous != "" {
		v.found(Broken, e, "the first record of a chain names one before it")
	}
}

// judgeNext compares two records that are neighbours; changed ones are reported already.
func (v *Verifier) judgeNext(before, e entry, changed map[int64]bool) {
	if e.Number == before.Number+1 {
		if e.Previous != before.Hash {
			v.found(Broken, e, "the record was not written behind the one before it, in "+before.place())
		}
		return
	}
	from, to := before.Number+1, e.Number-1
	for changed[from] {
		from++
	}
	for to >= from && changed[to] {
		to--
	}
	switch {
	case from == to:
		v.found(Missing, e, fmt.Sprintf("number %d is missing before it", from))
	case from < to:
		v.found(Missing, e, fmt.Sprintf("numbers %d to %d are missing before it", from, to))
	}
}

// expect looks for the record that somebody has noted as the last one.
func (v *Verifier) expect(want Expected) {
	if want.Hash != "" {
		for _, t := range v.trails {
			if slices.ContainsFunc(t.intact, func(e entry) bool { return e.Hash == want.Hash }) {
				return
			}
		}
		v.found(Cut, entry{}, "there is no record with the hash "+want.Hash)
		return
	}
	at := slices.IndexFunc(v.verdict.Chains, func(c ChainSummary) bool { return c.Writer == v.last })
	if at < 0 {
		v.found(Cut, entry{}, fmt.Sprintf("number %d is expected, and there is no record", want.Number))
		return
	}
	if c := v.verdict.Chains[at]; c.Last < want.Number {
		v.found(Cut, entry{Link: Link{Writer: c.Writer, Number: c.Last}}, fmt.Sprintf("the records end with number %d: number %d is expected", c.Last, want.Number))
	}
}

// View is the verdict as people read it.
func (v Verdict) View() document.Document {
	var d document.Document
	d.Fact("Records", strconv.Itoa(v.Records))
	for _, c := range v.Chains {
		d.Fact("Chain "+c.Writer, fmt.Sprintf("numbers %d to %d, the last with hash %s", c.First, c.Last, c.Hash))
	}
	switch {
	case !v.Intact:
		d.Fact("Verdict", number.Of(len(v.Findings)+v.MoreFindings, "finding"))
	case v.Proven:
		d.Fact("Verdict", "intact")
	default:
		d.Fact("Verdict", "intact; without a key nobody can tell whether a whole chain was written anew")
	}
	found := document.Table{Title: "Findings", Header: []string{"where", "what", "number", "why"}}
	for _, f := range v.Findings {
		where, number := f.File, ""
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if f.Number > 0 {
			number = strconv.FormatInt(f.Number, 10)
		}
		found.Add(where, string(f.Kind), number, f.Text)
	}
	found.More = document.AndMore(v.MoreFindings)
	d.Table(found)
	return d
}

// ErrKeyTooShort refuses a key that could be guessed.
var ErrKeyTooShort = errors.New("the key is too short: want at least 16 bytes")

// CheckKey refuses a key that is too short to prove anything.
func CheckKey(key []byte) error {
	if len(key) < 16 {
		return ErrKeyTooShort
	}
	return nil
}
