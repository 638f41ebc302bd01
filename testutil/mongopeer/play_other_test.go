//go:build !unix

package mongopeer

func play() {}
