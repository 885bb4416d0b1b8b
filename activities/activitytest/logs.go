package activitytest

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

func init() { klog.SetLogger(logr.Discard()) } // client-go logs what it retries
