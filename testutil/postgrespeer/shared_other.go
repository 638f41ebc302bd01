//go:build !linux

package postgrespeer

func removeShared(int) {}
