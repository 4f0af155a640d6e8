// Runs several threads at once.
#pragma once

#include <thread>
#include <vector>

namespace tuff_test {

// Runs body(0), body(1) … concurrently; returns when all have ended.
template <typename Body>
void on_threads(int count, Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace tuff_test
