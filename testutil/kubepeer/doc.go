// Package kubepeer gives tests an API server of Kubernetes: a real kube-apiserver, of the program in the environment
// variable KUBE_APISERVER or on the PATH, over an etcd server of package etcdpeer. Linux only. make kubernetes builds the
// program, which takes some minutes, from the module in the folder server; it is in no package of Debian's.
//
// There are no other parts of Kubernetes: no controllers, so that no garbage is collected and no quota counted, and no
// nodes. Rights are checked by RBAC. The kubeconfig has contexts of the same names for the users admin, who may do
// everything, and worker, reader and stranger, who have the rights that a test grants them.
//
// [Shared] is one server for all tests of the test binary, so each test must use namespaces of its own; [Start] starts one
// that a test may kill, pause and restart. It runs on a free port of the loopback interface, and ends with the test
// binary, even when that is killed.
//
// Where a program is missing, tests are skipped. If the environment variable REQUIRE_STORES, a list separated by commas,
// contains "kubernetes", they fail instead.
package kubepeer
