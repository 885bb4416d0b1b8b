package page

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"drydock.dev/drydock/api"
)

// tab is a tab of Chromium, and what went wrong in it.
type tab struct {
	browser
	ctx context.Context

	mu    sync.Mutex
	wrong []string
}

// newTab opens a tab.
func newTab(b browser) *tab {
	b.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		b.Fatalf("%v: install Debian's package chromium, as make e2e-slow does", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WindowSize(1200, 900))
	allocated, stop := chromedp.NewExecAllocator(b.Ctx, options...)
	b.Cleanup(stop)
	t := &tab{browser: b}
	t.ctx, stop = chromedp.NewContext(allocated)
	b.Cleanup(stop)
	if err := chromedp.Do(t.ctx); err != nil { // the browser lives as long as the context of the first call
		b.Fatal(err)
	}
	if err := chromedp.Listen(t.ctx, t.listen); err != nil {
		b.Fatal(err)
	}
	call(t, network.Enable, network.EnableParams{})
	call(t, log.Enable, cdp.Empty{})
	return t
}

// listen notes errors of scripts and policies, and requests for anything but the page's own server.
func (t *tab) listen(event any) {
	what := ""
	switch event := event.(type) {
	case *runtime.EventExceptionThrown:
		what = event.ExceptionDetails.Text
	case *log.EventEntryAdded:
		if event.Entry.Level == log.EntryLevelError {
			what = event.Entry.Text + " " + event.Entry.URL
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(event.Request.URL); err != nil || u.Host != t.address {
			what = "it asks for " + event.Request.URL
		}
	}
	if what != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.wrong = append(t.wrong, what)
	}
}

// run has the tab do something.
func run[T any](t *tab, action chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, time.Minute)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// call sends a command of the protocol.
func call[P, R any](t *tab, command cdp.Command[P, R], params P) R {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, time.Minute)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// ask evaluates a script.
func ask[T any](t *tab, script string) T {
	t.Helper()
	return run(t, chromedp.Evaluate[T](script))
}

func (t *tab) open(path string) {
	t.Helper()
	run(t, chromedp.Navigate("http://"+t.address+path))
}

// picture keeps what the tab shows, where DRYDOCK_PICTURES names a folder for it.
func (t *tab) picture(name string) {
	t.Helper()
	image := run(t, chromedp.FullScreenshot(100))
	if dir := os.Getenv("DRYDOCK_PICTURES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), image, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// comesTo waits until the page shows a text. The browser must not have loaded the page again.
func (t *tab) comesTo(text string) {
	t.Helper()
	t.Eventually("the page comes to say "+text, func() error {
		if !ask[bool](t, "window.stayed === true") {
			t.Fatal("the browser has loaded the page again")
		}
		if now := ask[string](t, "document.getElementById('main').innerText"); !strings.Contains(now, text) {
			return fmt.Errorf("it says %s", now)
		}
		return nil
	})
}

// isUsable checks three rules: every link, button and heading has a name; the element with the focus has an outline; the page is not wider
// than its window.
func (t *tab) isUsable(path, name string) {
	t.Helper()
	t.open(path) // the keyboard begins where somebody clicked last
	if ask[bool](t, "document.documentElement.scrollWidth > window.innerWidth") {
		t.Errorf("%s is wider than its window", name)
	}
	for _, n := range call(t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		role, label := string(valueOf(n.Role)), string(valueOf(n.Name))
		switch strings.Trim(role, `"`) {
		case "link", "button", "heading", "region", "navigation", "DisclosureTriangle":
			if strings.Trim(label, `" `) == "" {
				t.Errorf("%s: a %s has no name", name, role)
			}
		}
	}
	for i := range 12 {
		run(t, chromedp.KeyEvent(kb.Tab))
		outline := ask[string](t, "document.activeElement === document.body ? '' : getComputedStyle(document.activeElement).outlineStyle + ' ' + getComputedStyle(document.activeElement).outlineWidth")
		if i == 0 && !ask[bool](t, "document.activeElement.className === 'skip'") {
			t.Errorf("%s: the first stop of the keyboard does not lead to the content", name)
		}
		if strings.HasPrefix(outline, "none") || strings.HasSuffix(outline, " 0px") {
			t.Errorf("%s: nobody sees that %s has the focus: %s", name, ask[string](t, "document.activeElement.outerHTML"), outline)
		}
	}
}

func valueOf(v *accessibility.Value) []byte {
	if v == nil {
		return nil
	}
	return v.Value
}

// The page in Chromium: it comes up to date by itself, keeps what its reader has opened, can be used by keyboard, and asks nobody else for
// anything.
func TestSlowThePageInABrowser(t *testing.T) {
	b := prepareBrowser(t, "", "scheduler: {maxParallel: 4}")
	b.Rename("production") // the pictures of README.md are made here
	b.StartWorker()
	first := b.BeginWith("worker-01", `"reason":"BIOS 2.4"`)
	b.Until(first, api.Ready)
	b.MustDrydock("plan", "create", "kernel", "--selector", "kubernetes.io/hostname notin (worker-01)", "--max-parallel", "3", "--reason", "kernel 6.12", "--yes")
	tab := newTab(b)
	tab.open("/")
	ask[bool](tab, "window.stayed = true")
	run(tab, chromedp.Click("#zone-zone-b-service summary"))
	tab.comesTo("1 Ready for work")
	for _, done := range []string{"worker-02", "worker-03", "worker-04"} {
		b.Until(b.Temporal.GetWorkflow(b.Ctx, api.MaintenanceID(b.Cluster, done, "plan-kernel"), ""), api.Ready)
		b.MustDrydock("done", done, "--requestor", "plan-kernel", "--wait", "--yes")
	}
	tab.comesTo("3/19")
	tab.picture("light")
	b.SignalAnyRun(first, api.MsgFailed, api.FailedMessage{Reason: "the checksum is wrong"})
	tab.comesTo("1 failed, and held")
	tab.comesTo("the checksum is wrong")
	if !ask[bool](tab, "document.getElementById('zone-zone-b-service').open") {
		t.Error("what its reader had opened is closed")
	}
	tab.isUsable("/", "the cluster")
	call(tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	tab.picture("dark")
	run(tab, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	for path, name := range map[string]string{"/": "phone", "/nodes/worker-01": "phone-node", "/plans/kernel": "phone-plan"} {
		tab.isUsable(path, name)
		tab.picture(name)
	}
	call(tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	tab.open("/nodes/worker-01")
	call(tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{})
	if now := ask[string](tab, "document.getElementById('main').innerText"); !strings.Contains(now, "the checksum is wrong") {
		t.Errorf("without scripts it says %s", now)
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	if len(tab.wrong) > 0 {
		t.Errorf("in the browser: %q", tab.wrong)
	}
}
