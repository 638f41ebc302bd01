package promlease_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/promlease"
)

func ExampleNew() {
	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	m, err := promlease.New(registry, promlease.Options{})
	if err != nil {
		log.Fatal(err)
	}
	ledger := memory.New(memory.Options{})
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{Observer: m})
	worked := make(chan struct{}, 1)
	w, err := client.StartTask(context.Background(), workerlease.Options{WorkerType: "report", FailoverWithin: 30 * time.Second}, func(context.Context, workerlease.Lease) error {
		select {
		case worked <- struct{}{}:
		default:
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{}) // for http.Handle("GET /metrics", handler)
	<-worked

	answer := httptest.NewRecorder()
	for !strings.Contains(answer.Body.String(), `slotlease_leases_allocated_total{worker_type="report"} 1`) {
		answer = httptest.NewRecorder() // An observer may hear of a lease just after its task has begun.
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	}
	for _, line := range strings.Split(answer.Body.String(), "\n") {
		if strings.HasPrefix(line, "slotlease_lease_holding") || strings.HasPrefix(line, "slotlease_leases_allocated") {
			fmt.Println(line)
		}
	}
	if err := w.StopLeasing(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// slotlease_lease_holding{worker_type="report"} 1
	// slotlease_leases_allocated_total{worker_type="report"} 1
}
