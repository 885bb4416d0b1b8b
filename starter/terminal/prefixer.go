package terminal

import (
	"bytes"
	"io"
	"sync"
)

// Prefixer puts a prefix before every line, and writes whole lines only, so that the output of many commands can be
// told apart.
type Prefixer struct {
	mu     sync.Mutex
	To     io.Writer
	Prefix string
	rest   []byte
}

// maxLine bounds what is kept of a line whose end has not come.
const maxLine = 64 << 10

func (p *Prefixer) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	written := len(data)
	var whole bytes.Buffer
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			p.rest = append(p.rest, data...)
			break
		}
		p.line(&whole, data[:end])
		data = data[end+1:]
	}
	if len(p.rest) > maxLine {
		p.line(&whole, nil)
	}
	if _, err := p.To.Write(whole.Bytes()); whole.Len() > 0 && err != nil {
		return 0, err
	}
	return written, nil
}

// line completes the line that has begun.
func (p *Prefixer) line(to *bytes.Buffer, end []byte) {
	to.WriteString(p.Prefix)
	to.Write(p.rest)
	to.Write(end)
	to.WriteByte('\n')
	p.rest = p.rest[:0]
}

// Flush writes a last line that has no end.
func (p *Prefixer) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.rest) == 0 {
		return
	}
	var last bytes.Buffer
	p.line(&last, nil)
	_, _ = p.To.Write(last.Bytes())
}
